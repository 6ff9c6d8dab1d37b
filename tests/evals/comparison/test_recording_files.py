"""Long recordings: files that end at a size, each a recording, never more than is allowed."""

from __future__ import annotations

import io
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from penstock.evals.comparison.recording import Reader
from penstock.evals.comparison.recording_files import Bounds, Current, added
from tests.evals.recordings import BEGAN, chat

ARRIVALS = st.lists(st.tuples(st.floats(0, 1e5), st.integers(0, 500)), max_size=40)


@given(ARRIVALS, st.integers(300, 1500), st.integers(1, 4))
def test_whatever_comes_files_are_whole_recordings_within_the_bounds(
    arrivals: list[tuple[float, int]], size: int, files: int
) -> None:
    bounds, kept, left_out = Bounds(size, files), dict[int, bytes](), 0
    current: Current | None = None
    for number, (seconds, length) in enumerate(arrivals):
        request = chat(number, body={"text": "x" * length})
        arrived = BEGAN + timedelta(seconds=seconds)
        current, append = added(current, request, arrived, ("IBAN",), bounds)
        if append is None:
            left_out += 1
            continue
        kept[append.number] = kept.get(append.number, b"") + append.data
        for gone in append.drop:
            del kept[gone]
        assert current is not None
        assert len(kept[current.number]) == current.size
        assert len(kept) <= files
        assert all(len(data) <= size for data in kept.values())
    came = dict(enumerate(seconds for seconds, _ in arrivals))
    for data in kept.values():
        reader = Reader(io.BytesIO(data))
        for _, request in reader.requests():
            arrived = reader.header.began + timedelta(seconds=request.at)
            meant = BEGAN + timedelta(seconds=came[int(request.id.removeprefix("req-"))])
            assert abs(arrived - meant) < timedelta(milliseconds=1)
    if not kept:
        assert left_out == len(arrivals)


def test_a_request_larger_than_a_file_is_left_out_and_the_next_goes_on() -> None:
    bounds = Bounds(400, 2)
    current, _ = added(None, chat(1, body={}), BEGAN, (), bounds)
    after, append = added(current, chat(2, body={"x": "x" * 400}), BEGAN, (), bounds)
    assert (after, append) == (current, None)
    after, append = added(current, chat(3, body={}), BEGAN, (), bounds)
    assert append is not None
    assert (append.number, append.drop) == (1, ())
