"""What two workers say to each other: read as it was written, and whatever else comes refused."""

from __future__ import annotations

import socket
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.replica.vllm.microserving import sockets
from penstock.replica.vllm.microserving.arrivals import Arrivals, runs
from penstock.replica.vllm.microserving.frames import (
    HEADER,
    LARGEST_BODY,
    MOST_BLOCKS,
    BadFrame,
    Blocks,
    End,
    Frame,
    Hello,
    Refused,
    Welcome,
    decoded,
    encoded,
    length,
)

_NUMBERS = st.integers(0, 2**32 - 1)
_PLACES = st.lists(_NUMBERS, min_size=1, max_size=40, unique=True).map(tuple)
_BLOCKS = _PLACES.flatmap(
    lambda places: st.builds(
        Blocks,
        st.integers(0, 2**16 - 1),
        st.just(places),
        st.sampled_from([(), places]),
    )
)
_FRAMES = st.one_of(
    st.builds(
        Hello,
        st.text("abc/ä", min_size=1, max_size=60),
        st.binary(min_size=32, max_size=32),
        st.binary(min_size=32, max_size=32),
        st.binary(max_size=99),
    ),
    st.builds(Welcome, _NUMBERS),
    st.builds(Refused, st.text("abc ", max_size=200)),
    _BLOCKS,
    st.just(End()),
)


def _read(data: bytes) -> Frame:
    kind, size = length(data[: HEADER.size])
    assert size == len(data) - HEADER.size
    return decoded(kind, data[HEADER.size :])


@given(_FRAMES)
def test_a_frame_is_read_as_it_was_written(frame: Frame) -> None:
    assert _read(encoded(frame)) == frame


@given(st.integers(0, 255), st.binary(max_size=300))
def test_any_bytes_are_a_frame_or_refused(kind: int, body: bytes) -> None:
    try:
        kind, size = length(HEADER.pack(kind, len(body)))
        frame = decoded(kind, body)
    except BadFrame:
        return
    assert size == len(body)
    assert isinstance(frame, Refused) or encoded(frame)[HEADER.size :] == body


@given(_FRAMES, st.data())
def test_a_frame_that_was_bent_is_a_frame_or_refused(frame: Frame, data: st.DataObject) -> None:
    bent = bytearray(encoded(frame))
    place = data.draw(st.integers(0, len(bent) - 1))
    bent[place] ^= data.draw(st.integers(1, 255))
    try:
        kind, _ = length(bytes(bent[: HEADER.size]))
        decoded(kind, bytes(bent[HEADER.size :]))
    except BadFrame:
        pass


@pytest.mark.parametrize(
    "body",
    [
        b"\0\0\x04\x01\0" + b"\0" * 4 * (MOST_BLOCKS + 1),
        b"\0\0\0\0\0",
        b"\0\0\0\x02\0" + b"\0\0\0\x07" * 2,
    ],
    ids=["too many", "none", "one twice"],
)
def test_blocks_are_some_and_each_is_there_once(body: bytes) -> None:
    with pytest.raises(BadFrame):
        decoded(4, body)


def test_a_frame_that_says_it_is_too_long_is_refused_before_it_comes() -> None:
    with pytest.raises(BadFrame):
        length(HEADER.pack(1, LARGEST_BODY + 1))


@given(st.lists(st.integers(0, 30), max_size=40), st.integers(0, 9))
def test_runs_are_the_same_blocks_in_the_same_order(places: list[int], shift: int) -> None:
    there = [place + shift for place in places]
    made = runs(places, there)
    assert [a + i for a, _, n in made for i in range(n)] == places
    assert [b + i for _, b, n in made for i in range(n)] == there


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5)), max_size=60))
def test_a_block_counts_once_all_of_its_layers_are_there(come: list[tuple[int, int]]) -> None:
    arrivals = Arrivals(layers=3, blocks=6)
    for layer, place in come:
        arrivals.add(Blocks(layer, (place,)))
    whole = [{(layer, place) for layer in range(3)} <= set(come) for place in range(6)]
    assert arrivals.prefix() == (whole.index(False) if False in whole else 6)


@pytest.mark.parametrize("frame", [Blocks(3, (0,)), Blocks(0, (1, 6))])
def test_blocks_that_are_not_leased_are_refused(frame: Blocks) -> None:
    with pytest.raises(BadFrame):
        Arrivals(layers=3, blocks=6).check(frame)


def test_frames_and_what_follows_them_come_over_a_socket_however_it_is_cut() -> None:
    ours, theirs = socket.socketpair()
    data = [bytes([number % 251]) * 50_000 for number in range(300)]
    parts = [memoryview(one) for one in data]
    frame = Blocks(1, tuple(range(300)))
    sender = threading.Thread(target=sockets.send, args=(ours, frame, parts))
    sender.start()
    assert sockets.receive(theirs) == frame
    got = [bytearray(50_000) for _ in data]
    sockets.fill(theirs, [memoryview(one) for one in got])
    sender.join()
    assert got == data
    ours.close()
    with pytest.raises(ConnectionError):
        sockets.receive(theirs)
    theirs.close()
