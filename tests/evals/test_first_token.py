"""Time to the first token: what is read off a probe and a gateway, and how it is shown."""

from __future__ import annotations

import http.client
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from penstock.evals.errors import EvalError
from penstock.evals.first_token import FirstToken, engine_alone, first_event_ms

WHOLE = b"data: {}\n\ndata: [DONE]\n\n"


class Answering(BaseHTTPRequestHandler):
    """Answers every POST with the body that its server was given."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        body: bytes = self.server.body  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing on the tests' terminal."""


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    """A gateway's stand-in on a free port; `body` is what it answers."""
    with HTTPServer(("127.0.0.1", 0), Answering) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_whole_stream_is_timed(server: HTTPServer) -> None:
    server.body = WHOLE  # type: ignore[attr-defined]
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    assert 0 < first_event_ms(connection) < 10_000
    connection.close()


def test_a_stream_without_its_end_is_an_error(server: HTTPServer) -> None:
    server.body = b"data: {}\n\n"  # type: ignore[attr-defined]
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    with pytest.raises(EvalError, match="200"):
        first_event_ms(connection)
    connection.close()


def test_a_probe_says_what_it_measured_on_its_last_line() -> None:
    script = "print('loading'); print('{\"ttft_ms\": [1.5, 2.5]}')"
    assert engine_alone([sys.executable, "-c", script], 2) == (1.5, 2.5)


def test_a_probe_that_fails_is_an_error_with_its_words() -> None:
    with pytest.raises(EvalError, match="no such model"):
        engine_alone([sys.executable, "-c", "raise SystemExit('no such model')"], 2)


def test_the_table_names_what_was_added_at_the_median() -> None:
    shown = FirstToken(through=(3.0, 5.0, 9.0), alone=(2.0, 4.0, 8.0)).as_markdown()
    assert "| through the gateway | 3 | 5.00 | 9.00 | 9.00 |" in shown
    assert shown.endswith("Added at the median: 1.00 ms.")
