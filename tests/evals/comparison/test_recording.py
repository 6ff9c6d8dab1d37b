"""Recordings: what is written is read again, and whatever else is there is an error of its line."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.evals.comparison import recording
from penstock.evals.comparison.recording import (
    Answered,
    BadRecording,
    Header,
    Reader,
    Recorded,
    header_line,
    request_at,
    request_line,
)
from tests.evals.recordings import BEGAN, chat

HEADER = header_line(Header(BEGAN, ("IBAN",)))
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(1 << 63), 1 << 63) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
COUNTS = st.none() | st.integers(0, 1 << 30)
TIMES = st.none() | st.floats(0, 1e6)
REQUESTS = st.builds(
    Recorded,
    id=st.from_regex(r"[A-Za-z0-9._:/-]{1,128}", fullmatch=True),
    at=st.floats(-1e6, 1e6),
    path=st.sampled_from(["/v1/chat/completions", "/classify", "/v1/responses/input_tokens"]),
    body=st.dictionaries(TEXTS, JSON, max_size=4),
    session=st.from_regex(r"[a-f0-9]{0,64}", fullmatch=True),
    answered=st.none()
    | st.builds(
        Answered,
        status=st.integers(100, 599),
        finish_reason=TEXTS,
        prompt_tokens=COUNTS,
        completion_tokens=COUNTS,
        ttft_ms=TIMES,
        total_ms=TIMES,
    ),
)


def told(**changes: Any) -> bytes:
    """A right line but for these fields; None leaves one out."""
    line = {"id": "a", "at": 0.5, "path": "/v1/chat/completions", "body": {}, **changes}
    return json.dumps({name: value for name, value in line.items() if value is not None}).encode()


def read(data: bytes) -> list[Recorded]:
    """All requests of a file."""
    return [request for _, request in Reader(io.BytesIO(data)).requests()]


def error_of(data: bytes) -> str:
    """What is wrong with a file; "none" where it is a recording."""
    try:
        read(data)
    except BadRecording as bad:
        return str(bad)
    return "none"


@given(st.lists(REQUESTS, max_size=4))
def test_what_is_written_is_read_again_whole_or_by_its_place(requests: list[Recorded]) -> None:
    stream = io.BytesIO(HEADER + b"\n".join(map(request_line, requests)))
    reader = Reader(stream)
    assert reader.header == Header(BEGAN, ("IBAN",))
    found = list(reader.requests())
    assert [request for _, request in found] == requests
    assert [request_at(stream, offset) for offset, _ in reversed(found)] == requests[::-1]


@given(st.binary(max_size=60) | st.lists(st.binary(max_size=40), max_size=3).map(b"\n".join))
def test_anything_is_a_recording_or_an_error_that_names_the_line(data: bytes) -> None:
    for before in (b"", HEADER, HEADER + request_line(chat(1))):
        assert error_of(before + data).startswith(("line ", "none"))


@given(st.sampled_from(["id", "at", "path", "session", "body", "answered", "x"]), JSON)
def test_any_value_of_a_field_is_taken_or_refused_by_name(name: str, value: Any) -> None:
    error = error_of(HEADER + told(**{name: value}))
    assert error == "none" or error.startswith("line 2 of the recording: ")
    assert name in error or error == "none" or name == "answered"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (told(at="x"), "at: is 'x', must be a number"),
        (told(at=True), "at: is True"),
        (told(at=1e12), "at: is 1000000000000.0"),
        (told(id=None), "id: is missing"),
        (told(path="http://other/"), "path: is 'http://other/'"),
        (told(path="/v1/\r\nhost: x"), "path: is "),
        (told(session="a\nb"), "session: is 'a\\nb'"),
        (told(body=[1]), "body: is [1], must be the JSON object"),
        (told(answered=[]), "answered: is []"),
        (told(answered={"cost": 1}), "answered: there is no field 'cost'"),
        (told(answered={"usage": {"x": 1}}), "usage: there is no field 'x'"),
        (told(answered={"ttft_ms": -1}), "ttft_ms: is -1"),
        (told(answered={"status": 999}), "status: is 999"),
        (told(more=1), "there is no field 'more'"),
        (b'{"id": 1e999}', "is no JSON"),
        (b'{"half": ', "is no JSON"),
        (b'{"body": "\\ud800"}', "is no UTF-8, or holds half a surrogate pair"),
        (b"[" * 100_000, "is no JSON"),
        (b"[]", "must be a JSON object"),
    ],
)
def test_what_is_wrong_is_said_with_line_and_value(line: bytes, says: str) -> None:
    with pytest.raises(BadRecording) as bad:
        read(HEADER + b"\n" + line)
    assert str(bad.value).startswith(f"line 3 of the recording: {says}")


@pytest.mark.parametrize(
    ("header", "says"),
    [
        (b"", "must be a header, such as"),
        (told(), "there is no field 'at'"),
        (b'{"format": "other"}', "format: is 'other', must be 'penstock-recording'"),
        (HEADER.replace(b": 1", b": 2").replace(b":1", b":2", 1), "version: is 2"),
        (HEADER.replace(b"+00:00", b""), "began: is '2026-01-31T12:00:00', must be a time"),
        (HEADER.replace(b'["IBAN"]', b"[1]"), "redacted: is [1]"),
    ],
)
def test_a_header_that_is_none_is_said_to_be(header: bytes, says: str) -> None:
    with pytest.raises(BadRecording) as bad:
        read(header)
    assert str(bad.value).startswith(f"line 1 of the recording: {says}")


def test_lines_and_files_beyond_their_bounds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "LONGEST_LINE", 400)
    long = chat(1, body={"text": "x" * 400})
    with pytest.raises(BadRecording, match="cannot be recorded: is longer than 400 bytes"):
        request_line(long)
    with pytest.raises(BadRecording, match="line 2 of the recording: is longer than 400 bytes"):
        read(HEADER + b"x" * 1000)
    monkeypatch.setattr(recording, "MOST_REQUESTS", 2)
    with pytest.raises(BadRecording, match="line 4 of the recording: there are more than 2"):
        read(HEADER + request_line(chat(1)) * 3)


@pytest.mark.parametrize("body", [{"x": float("nan")}, {"x": "\ud800"}, {"x": object()}])
def test_what_could_not_be_read_again_is_not_written(body: Any) -> None:
    with pytest.raises(BadRecording, match="request 'req-1' cannot be recorded"):
        request_line(chat(1, body=body))
