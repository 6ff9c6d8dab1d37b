from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from penstock.evals.errors import EvalError
from penstock.evals.scraping import scraped, series, total

PAGE = """\
# HELP hits_total Hits.
hits_total{replica="a, b",model="x=y"} 3
hits_total{replica="c"} 4.5
hits_total_of_another 9
plain 2
"""


class Metrics(BaseHTTPRequestHandler):
    """Tells of each time that it is read; another path than /metrics fails."""

    def do_GET(self) -> None:
        self.server.reads.release()  # type: ignore[attr-defined]
        self.send_response(200 if self.path == "/metrics" else 500)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing on the tests' terminal."""


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    """A page of metrics on a free port; `reads` is released at each scrape."""
    with HTTPServer(("127.0.0.1", 0), Metrics) as server:
        server.reads = threading.Semaphore(0)  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_page_is_read_again_and_again_while_the_block_lasts(server: HTTPServer) -> None:
    with scraped(f"http://127.0.0.1:{server.server_port}/metrics", every=0.01):
        for _ in range(3):
            assert server.reads.acquire(timeout=10)  # type: ignore[attr-defined]


def test_a_page_that_cannot_be_read_is_told_at_the_end(server: HTTPServer) -> None:
    with (
        pytest.raises(EvalError, match="/missing cannot be read"),
        scraped(f"http://127.0.0.1:{server.server_port}/missing", every=0.01),
    ):
        assert server.reads.acquire(timeout=10)  # type: ignore[attr-defined]


def test_without_a_page_nothing_is_read() -> None:
    with scraped(""):
        pass


def test_series_are_found_with_their_labels() -> None:
    assert series(PAGE, "hits_total") == [
        ({"replica": "a, b", "model": "x=y"}, 3),
        ({"replica": "c"}, 4.5),
    ]
    assert total(PAGE, "hits_total") == 7.5
    assert total(PAGE, "plain") == 2
    assert total(PAGE, "missing") == 0
