"""Rude clients: what they send, what their neighbour sees, and what is told of it."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from penstock.evals.errors import EvalError
from penstock.evals.neighbours import Neighbour, Seen
from penstock.evals.rude_bench import ALL, ALONE, CHOICES, Beside, as_markdown, beside
from penstock.evals.rude_clients import Gateway, run
from penstock.evals.rude_kinds import KINDS

SILENCE = 0.15


class Handler(BaseHTTPRequestHandler):
    """Answers each request with two events, and a silence between them."""

    status: ClassVar[int] = 200

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(b"data: {}\n\n")
        self.wfile.flush()
        time.sleep(SILENCE)
        self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@pytest.fixture(params=[200])
def port(request: pytest.FixtureRequest) -> Iterator[int]:
    """A server's, which answers with the status that a test wants."""
    handler = type("Answering", (Handler,), {"status": request.param})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever).start()
        yield server.server_port
        server.shutdown()


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_sends_json_for_its_model_and_never_the_same_twice(kind: str) -> None:
    bodies = [KINDS[kind]("mini", number).body for number in range(2)]
    assert bodies[0] != bodies[1]
    assert json.loads(bodies[0])["model"] == "mini"


def test_a_neighbour_sees_first_tokens_and_silences(port: int) -> None:
    seen = Neighbour(port, "mini", "key").look(0.5)
    assert seen.p50 <= seen.p99 < SILENCE * 1000 <= seen.longest_silence
    assert not seen.failures


@pytest.mark.parametrize("port", [503], indirect=True)
def test_a_gateway_that_answers_nothing_is_an_error(port: int) -> None:
    with pytest.raises(EvalError, match="answered 503"):
        Neighbour(port, "mini", "key").look(0.1)


def test_rude_clients_count_what_they_are_answered(port: int) -> None:
    answers = asyncio.run(run(Gateway(port, "mini", "key"), ["grammar", "half"], 2, 0.5))
    assert {"200", "no answer"} == set(answers)


def test_a_neighbour_is_left_alone_within_the_larger_of_two_limits_and_without_failures() -> None:
    alone = Seen(first_tokens=[20.0], silences=[5.0])

    def passed(first: float, silence: float, failures: int = 0, usual: Seen = alone) -> bool:
        seen = Seen([first], [silence], ["cut off"] * failures)
        return beside("large", seen, usual, {"answers": {}, "cpu_seconds": 0}).passed

    slow = Seen(first_tokens=[400.0], silences=[5.0])
    assert passed(250, 200)
    assert passed(800, 200, usual=slow)
    assert not passed(251, 200)
    assert not passed(250, 201)
    assert not passed(20, 5, failures=1)


def test_the_table_has_a_row_for_each_kind() -> None:
    told = {"answers": {"400": 3, "200": 1}, "cpu_seconds": 1.5}
    seen = Seen(first_tokens=[20.0], silences=[5.0])
    rows: list[Beside] = [beside(kind, seen, seen, told) for kind in (ALONE, *CHOICES)]
    table = as_markdown(rows)
    assert "first token p99 within 250 ms" in table
    assert f"| {ALL} | 1 | 20 | 20 | 5 | 0 | met | 1 x 200, 3 x 400 | 1.5 |" in table
