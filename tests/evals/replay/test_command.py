"""`evals replay` from its command line to what the endpoint is asked, and what is said of it."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from penstock.evals.comparison.recording import Answered
from penstock.evals.main import app
from tests.evals.fake_gateway import Said, streamed
from tests.evals.recordings import CHAT, chat, endpoint, written

STREAM = (200, "text/event-stream", streamed(Said("Hello there")))
BODY = (200, "application/json", b'{"data": [], "usage": {"prompt_tokens": 3}}')
FAST = ("--speed", "max")


def run(file: Path, target: str, *more: str) -> Result:
    """The command."""
    return CliRunner().invoke(app, ["replay", str(file), "--target", target, *more])


def results(folder: Path) -> Any:
    """What result.json says."""
    return json.loads((folder / "result.json").read_text())["results"]


def test_requests_are_sent_as_recorded_to_their_endpoints_and_counted(tmp_path: Path) -> None:
    embedding = {"model": "embed", "input": "x"}
    file = written(
        tmp_path / "r.jsonl",
        chat(2, at=0.002, path="/v1/embeddings", body=embedding),
        chat(1, at=0.001, session="5f1"),
        redacted=("IBAN",),
    )
    with endpoint({CHAT: STREAM, "/v1/embeddings": BODY}) as target:
        more = ("--api-key", "psk_1", "--out", str(tmp_path / "o"), "--most-at-once", "1")
        done = run(file, f"{target.url}/v1/", *more)
    assert done.exit_code == 0, done.output
    assert [path for path, _, _ in target.asked] == [CHAT, "/v1/embeddings"]
    assert [body for _, body, _ in target.asked] == [dict(chat(1).body), embedding]
    headers = target.asked[0][2]
    assert (headers["authorization"], headers["x-penstock-session"]) == ("Bearer psk_1", "5f1")
    assert "x-penstock-session" not in target.asked[1][2]
    found = results(tmp_path / "o")
    assert found["sum"]["endings"] == {"whole": 2}
    assert found["sum"]["finish_reasons"] == {"stop": 1, "none": 1}
    assert (found["sum"]["prompt_tokens"], found["sum"]["completion_tokens"]) == (8, 2)
    assert [each["id"] for each in found["requests"]] == ["req-1", "req-2"]
    assert found["requests"][0]["ttft_ms"] <= found["requests"][0]["total_ms"]
    assert found["sum"]["late_ms"]["count"] == 2
    assert found["recorded"]["redacted"] == ["IBAN"]
    assert (tmp_path / "o" / "result.md").read_text() == done.output
    assert "Recorded without: IBAN." in done.output


def test_no_request_waits_for_the_answer_of_another(tmp_path: Path) -> None:
    file = written(tmp_path / "r.jsonl", *(chat(n, at=n / 1000) for n in range(20)))
    with endpoint({CHAT: STREAM}, wait_for=20) as target:
        done = run(file, target.url, "--strict")
    assert done.exit_code == 0, done.output
    assert target.most_under_way == 20


def test_no_more_are_under_way_than_may_be_and_those_held_back_are_counted(tmp_path: Path) -> None:
    file = written(tmp_path / "r.jsonl", *(chat(n) for n in range(12)))
    with endpoint({CHAT: STREAM}) as target:
        done = run(file, target.url, "--most-at-once", "3", "--out", str(tmp_path))
    assert done.exit_code == 0, done.output
    assert len(target.asked) == 12
    assert target.most_under_way <= 3
    held_back = results(tmp_path)["sum"]["held_back"]
    assert 0 < held_back <= 9
    assert f"{held_back} request" in done.output


def test_as_fast_as_possible_keeps_no_schedule_and_a_limit_takes_the_first(tmp_path: Path) -> None:
    file = written(tmp_path / "r.jsonl", chat(3, at=86400.0), chat(1), chat(2, at=3600.0))
    with endpoint({CHAT: STREAM}) as target:
        done = run(file, target.url, *FAST, "--limit", "2", "--model", "maxi")
    assert done.exit_code == 0, done.output
    assert {body["model"] for _, body, _ in target.asked} == {"maxi"}
    assert {body["messages"][0]["content"] for _, body, _ in target.asked} == {"Hi 1", "Hi 2"}
    assert "No schedule was kept." in done.output


@pytest.mark.parametrize(
    ("reply", "ending", "status"),
    [
        ((503, "application/json", b'{"error": {"code": "x", "message": "y"}}'), "refused", "503"),
        ((200, "text/event-stream", STREAM[2][:-20]), "truncated", "200"),
        (
            (200, "text/event-stream", b'data: {"error": {"code": "x", "message": "y"}}\n\n'),
            *("error in the stream", "200"),
        ),
    ],
)
def test_what_is_no_whole_answer_is_told_and_fails_a_strict_replay(
    tmp_path: Path, reply: tuple[int, str, bytes], ending: str, status: str
) -> None:
    file = written(tmp_path / "r.jsonl", chat(1), chat(2))
    with endpoint({CHAT: reply}) as target:
        done = run(file, target.url, *FAST, "--out", str(tmp_path))
        strict = run(file, target.url, *FAST, "--strict")
    assert (done.exit_code, strict.exit_code) == (0, 1), done.output
    total = results(tmp_path)["sum"]
    assert (total["endings"], total["statuses"]) == ({ending: 2}, {status: 2})
    assert total["failed"] == 2
    assert "2 requests without a whole answer" in done.output


def test_what_was_recorded_stands_beside_what_is_answered_now(tmp_path: Path) -> None:
    then = Answered(200, "length", 5, 9, 10.0, 20.0)
    refused = Answered(status=429)
    file = written(tmp_path / "r.jsonl", chat(1, answered=then), chat(2, answered=refused), chat(3))
    with endpoint({CHAT: STREAM}) as target:
        done = run(file, target.url, *FAST, "--out", str(tmp_path))
    found = results(tmp_path)["beside_recorded"]
    assert (found["requests"], found["other_status"], found["other_finish_reason"]) == (2, 1, 1)
    assert found["completion_tokens"] == [9, 2]
    assert found["ttft_ms"][0]["p50"] == 10.0
    assert "Of 2 requests the recording tells the answer: 1 have another status" in done.output
    assert "| total ms, recorded | 1 | 20.0 | 20.0 | 20.0 |" in done.output


def test_a_wrong_recording_is_said_before_anything_is_asked(tmp_path: Path) -> None:
    file = written(tmp_path / "r.jsonl", chat(1))
    file.write_bytes(file.read_bytes() + b"{}\n")
    with endpoint({CHAT: STREAM}) as target:
        done = run(file, target.url)
    assert done.exit_code == 1
    assert "r.jsonl: line 3 of the recording: body: is missing" in done.output
    assert not target.asked


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--speed", "0"), "--speed 0: must be a number above 0, or max"),
        (("--speed", "nan"), "must be a number above 0"),
        (("--target", "ftp://x"), "must be an http or https address"),
        (("--out", "/proc/none"), "cannot be written to"),
    ],
)
def test_what_cannot_be_replayed_is_said_in_a_line(
    tmp_path: Path, more: tuple[str, ...], says: str
) -> None:
    file = written(tmp_path / "r.jsonl", chat(1))
    with endpoint({CHAT: STREAM}) as target:
        done = run(file, target.url, *more)
    assert done.exit_code == 1
    assert says in done.output


def test_files_and_endpoints_that_are_not_there_are_said_to_be(tmp_path: Path) -> None:
    file = written(tmp_path / "r.jsonl", chat(1))
    with socket.create_server(("127.0.0.1", 0)) as gone:
        url = f"http://127.0.0.1:{gone.getsockname()[1]}"
    assert f"{url} does not answer" in run(file, url).output
    assert "none.jsonl cannot be read" in run(tmp_path / "none.jsonl", url).output
    assert "the recording holds no request" in run(written(tmp_path / "e.jsonl"), url).output
    with endpoint({"/v1/models": (401, "application/json", b"{}")}) as target:
        assert "name a key by --api-key" in run(file, target.url).output
