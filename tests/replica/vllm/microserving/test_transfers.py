"""KV on its way between two workers, over real sockets: all of it, or a bounded end."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock.replica.vllm.microserving import receiving, sending, sockets
from penstock.replica.vllm.microserving.frames import Blocks, End, Hello, Refused, Welcome
from tests.fakes.kv_memory import FINGERPRINT, NONCE, Pair, order
from tests.fakes.waiting import until

_PAIRS = [(0, 0), (1, 1), (5, 2), (7, 3)]
_LEASED = [6, 2, 3, 4]


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair()
    yield made
    made.close()


def wait_for(condition: Callable[[], bool], what: str) -> None:
    """Of other threads."""
    asyncio.run(until(condition, what, seconds=20))


def _connected(pair: Pair, **other: Any) -> socket.socket:
    """A peer of the receiver's that has said who it is."""
    peer = socket.create_connection(("127.0.0.1", pair.receiver.port))
    peer.settimeout(20)
    told = {"lease": "lease", "nonce": NONCE, "fingerprint": FINGERPRINT}
    sockets.send(peer, Hello(**{**told, **other}))
    return peer


def test_blocks_go_where_they_are_leased_and_nowhere_else(pair: Pair) -> None:
    before = [[bytes(block) for block in layer] for layer in pair.there.held]
    pair.receiver.open(order(_LEASED))
    pair.send_all(pair.job(4), _PAIRS)
    report = pair.reports.next("sent")
    assert (report["error"], report["bytes"]) == ("", 3 * 4 * 64)
    pair.told.next("finished")
    pair.end()
    assert pair.told.next("stopped")["blocks"] == 4
    for layer, blocks in enumerate(before):
        moved = {_LEASED[to]: bytes(pair.here.held[layer][at]) for at, to in _PAIRS}
        assert pair.there.held[layer] == [moved.get(at, old) for at, old in enumerate(blocks)]


def test_a_lease_that_is_told_of_late_and_in_pieces_is_waited_for(pair: Pair) -> None:
    pair.send_all(pair.job(4), _PAIRS)
    whole = order(_LEASED)
    pair.receiver.open({**whole, "blocks": _LEASED[:3]})
    pair.receiver.open({**whole, "blocks": _LEASED[3:]})
    assert pair.reports.next("sent")["error"] == ""


def test_a_late_order_to_close_ends_no_later_lease_of_that_name(pair: Pair) -> None:
    pair.receiver.open({**order([1, 5]), "nonce": "00" * 32})
    pair.receiver.open(order(_LEASED))  # the scheduler has given the first one up
    pair.end("00" * 32)
    stopped = pair.told.next("stopped")
    assert (stopped["nonce"], stopped["blocks"]) == ("00" * 32, 0)
    pair.send_all(pair.job(4), _PAIRS)
    assert pair.reports.next("sent")["error"] == ""
    assert pair.told.next("finished")["nonce"] == NONCE.hex()


def test_a_lease_that_its_scheduler_gave_up_takes_no_more_once_its_name_is_used_again(
    pair: Pair,
) -> None:
    pair.receiver.open({**order([1, 5]), "nonce": "00" * 32})
    before = _connected(pair, nonce=bytes(32))
    assert isinstance(sockets.receive(before), Welcome)
    pair.receiver.open(order(_LEASED))
    with pytest.raises(ConnectionError):
        sockets.receive(before)
    before.close()


@pytest.mark.parametrize(
    "other", [{"nonce": b"x" * 32}, {"fingerprint": b"x" * 32}, {"lease": "other"}]
)
def test_a_sender_that_was_not_meant_writes_nothing(pair: Pair, other: dict[str, Any]) -> None:
    pair.receiver.open(order(_LEASED))
    pair.send_all(pair.job(4, **other), _PAIRS)
    assert pair.reports.next("sent")["error"] == "no_lease"
    pair.end()
    assert pair.told.next("stopped")["bytes"] == 0


def test_a_closed_lease_stops_its_sender_and_keeps_what_was_whole(pair: Pair) -> None:
    pair.receiver.open(order(_LEASED))
    job = pair.job(4)
    for layer in range(3):
        job.add(layer, _PAIRS[:2])
    peer_bytes = 3 * 2 * 64
    wait_for(lambda: pair.receiver._leases["lease"].bytes == peer_bytes, "two blocks are there")
    pair.end()
    assert pair.told.next("stopped")["blocks"] == 2
    job.add(0, _PAIRS[2:])
    job.end()
    assert pair.reports.next("sent")["error"] == "transfer"
    pair.end()  # asked once more, there is nothing left to say of it
    assert pair.told.next("stopped")["blocks"] == 0


def test_a_sender_that_dies_leaves_what_was_whole(pair: Pair) -> None:
    pair.receiver.open(order(_LEASED))
    peer = _connected(pair)
    assert isinstance(sockets.receive(peer), Welcome)
    for layer in range(3):
        sockets.send(peer, Blocks(layer, (0,)), [memoryview(bytes(64))])
    sockets.send(peer, Blocks(0, (1,)), [memoryview(bytes(10))])
    peer.close()
    wait_for(lambda: not pair.receiver._leases["lease"].peers, "it is noticed")
    pair.end()
    assert pair.told.next("stopped")["blocks"] == 1


def test_a_sender_that_stands_still_is_left_as_soon_as_the_lease_ends(pair: Pair) -> None:
    pair.receiver.open(order(_LEASED))
    peer = _connected(pair)
    assert isinstance(sockets.receive(peer), Welcome)
    sockets.send(peer, Blocks(0, (1,)), [memoryview(bytes(10))])
    pair.end()
    assert pair.told.next("stopped")["blocks"] == 0
    peer.close()


@pytest.mark.parametrize(
    "said",
    [b"GET / HTTP/1.1\r\n\r\n", b"\x01\xff\xff\xff\xff", b"\x04\0\0\0\x09\0\0\0\x01\0\0\0\0\0"],
    ids=["nonsense", "too long", "blocks before a hello"],
)
def test_what_makes_no_sense_is_left(pair: Pair, said: bytes) -> None:
    peer = socket.create_connection(("127.0.0.1", pair.receiver.port))
    peer.settimeout(20)
    peer.sendall(said)
    with contextlib.suppress(ConnectionResetError):  # of what it has not read
        assert peer.recv(1) == b""
    peer.close()


def test_a_peer_that_writes_beyond_its_lease_is_left(pair: Pair) -> None:
    pair.receiver.open(order(_LEASED))
    peer = _connected(pair)
    assert isinstance(sockets.receive(peer), Welcome)
    sockets.send(peer, Blocks(0, (4,)), [memoryview(bytes(64))])
    with pytest.raises(ConnectionError):
        sockets.receive(peer)
    peer.close()


def test_a_peer_that_says_nothing_keeps_no_place(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiving, "HELLO_WITHIN", 0.05)
    peer = socket.create_connection(("127.0.0.1", pair.receiver.port))
    peer.settimeout(20)
    assert peer.recv(1) == b""
    peer.close()


def test_peers_that_show_nothing_keep_nobody_out(pair: Pair) -> None:
    pair.receiver.open(order(_LEASED))
    writing = _connected(pair)
    assert isinstance(sockets.receive(writing), Welcome)
    address = ("127.0.0.1", pair.receiver.port)
    silent = [socket.create_connection(address) for _ in range(receiving.MOST_UNPROVEN + 5)]
    silent[0].settimeout(20)
    assert silent[0].recv(1) == b""  # the oldest makes room
    pair.send_all(pair.job(4), _PAIRS)
    assert pair.reports.next("sent")["error"] == ""
    sockets.send(writing, End())  # who writes is not among those that do
    assert sockets.receive(writing) == Welcome(4)
    for one in (writing, *silent):
        one.close()


def test_peers_are_taken_again_after_the_process_was_out_of_files(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair.receiver.open(order(_LEASED))
    early, said = socket.socket(), threading.Event()
    monkeypatch.setattr(receiving.log, "warning", lambda *_: said.set())
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (early.fileno(), hard))
    try:
        early.connect(("127.0.0.1", pair.receiver.port))
        assert said.wait(20)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    early.close()
    peer = _connected(pair)
    assert isinstance(sockets.receive(peer), Welcome)
    peer.close()


def test_only_so_many_write_into_one_lease(pair: Pair) -> None:
    pair.receiver.open(order(_LEASED))
    peers = [_connected(pair) for _ in range(receiving.MOST_WRITERS + 1)]
    answers = [sockets.receive(peer) for peer in peers]
    assert sorted(type(one).__name__ for one in answers) == ["Refused", *["Welcome"] * 4]
    assert any(isinstance(one, Refused) for one in answers)
    for peer in peers:
        peer.close()


def test_a_request_that_is_preempted_is_sent_again_from_its_first_block(pair: Pair) -> None:
    pair.receiver.open(order(_LEASED))
    job = pair.job(4)
    job.add(0, _PAIRS[:2])
    job.rewind()
    for layer in pair.here.held:
        for block in layer:
            block[:] = b"\x55" * 64
    pair.send_all(job, _PAIRS)
    assert pair.reports.next("sent")["error"] == ""
    assert all(pair.there.held[layer][at] == b"\x55" * 64 for layer in range(3) for at in _LEASED)


def test_a_request_that_is_preempted_before_its_last_blocks_left_is_not_told_as_sent(
    pair: Pair,
) -> None:
    job = pair.job(4)
    pair.send_all(job, _PAIRS)  # there is no lease yet
    job.rewind()
    pair.receiver.open(order(_LEASED))
    job.add(0, _PAIRS)
    first = 4 * 64
    wait_for(lambda: pair.receiver._leases["lease"].bytes == first, "the first layer is there")
    job.add(1, _PAIRS)
    job.add(2, _PAIRS)
    job.end()
    report = pair.reports.next("sent")
    assert (report["error"], report["bytes"]) == ("", 3 * 4 * 64)
    pair.told.next("finished")


def test_a_receiver_that_does_not_read_holds_no_step_and_no_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sending, "STALLS", 0.3)
    pair = Pair(block_bytes=4 << 20)
    server = socket.create_server(("127.0.0.1", 0))
    stalled = pair.job(4, port=server.getsockname()[1])
    peer, _ = server.accept()
    sockets.send(peer, Welcome())
    for _ in range(8):
        stalled.add(0, _PAIRS)
    wait_for(lambda: stalled._reading, "it is sending")
    stalled.rewind()
    assert not stalled._reading
    assert "preempted" in pair.reports.next("sent")["message"]
    assert not stalled.running
    for one in (peer, server):
        one.close()
    pair.close()


def test_a_transfer_that_is_not_wanted_stops(pair: Pair) -> None:
    pair.receiver.open(order(_LEASED))
    job = pair.job(4)
    job.stop("it is not wanted any more")
    assert pair.reports.next("sent")["error"] == "transfer"
    assert not job.running


def test_a_receiver_that_is_not_there_is_told(pair: Pair) -> None:
    closed = socket.create_server(("127.0.0.1", 0))
    port = closed.getsockname()[1]
    closed.close()
    pair.send_all(pair.job(4, port=port), _PAIRS)
    assert pair.reports.next("sent")["error"] == "transfer"
