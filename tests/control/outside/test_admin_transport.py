"""Lists of a head that has many; answers that are lost."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest
from pydantic import BaseModel, TypeAdapter

from penstock.control.errors import NoHeadAnswers
from penstock.control.outside.admin_transport import PAGE, AdminTransport


class Named(BaseModel):
    name: str


class Head(ThreadingHTTPServer):
    """Has so many; `asked`: the queries."""

    many = 0

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.asked: list[dict[str, list[str]]] = []
        self.hangs_up = 0  # so many times, without an answer
        self.keys: list[str | None] = []

    def page(self, asked: dict[str, list[str]]) -> list[Named]:
        self.asked.append(asked)
        names = [f"n{number:04}" for number in range(self.many)]
        after = asked.get("after", [""])[0]
        names = [name for name in names if name > after][: int(asked["limit"][0])]
        return [Named(name=name) for name in names]


class Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Head)
        asked = parse_qs(urlsplit(self.path).query)
        found = self.server.page(asked)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(TypeAdapter(list[Named]).dump_json(found))

    def do_POST(self) -> None:
        assert isinstance(self.server, Head)
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.keys.append(self.headers["idempotency-key"])
        self.server.hangs_up -= 1
        if self.server.hangs_up >= 0:
            self.close_connection = True
            return
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def head() -> Iterator[Head]:
    with Head() as head:
        thread = threading.Thread(target=head.serve_forever)
        thread.start()
        yield head
        head.shutdown()
        thread.join()


@pytest.mark.parametrize("many", [0, 1, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE])
async def test_every_one_is_listed_once(head: Head, many: int) -> None:
    head.many = many
    url = f"http://127.0.0.1:{head.server_port}"
    async with AdminTransport(url, lambda: "token") as client:
        found = await client.pages_of("things", Named, lambda it: it.name)
    assert [it.name for it in found] == [f"n{number:04}" for number in range(many)]
    assert len(head.asked) == many // PAGE + 1


async def test_what_is_none_or_false_is_no_parameter_and_zero_is_one(head: Head) -> None:
    asked = {"limit": 0, "force": True, "prune": False, "after": None}
    async with AdminTransport(f"http://127.0.0.1:{head.server_port}", lambda: "t") as admin:
        await admin.call("GET", "/things", params=asked)
    assert head.asked == [{"limit": ["0"], "force": ["true"]}]


async def test_a_post_whose_answer_was_lost_is_sent_again_under_its_key(head: Head) -> None:
    head.hangs_up = 2
    async with AdminTransport(f"http://127.0.0.1:{head.server_port}", lambda: "t") as admin:
        await admin.call("POST", "/deployments/mini/restart")
        assert len(head.keys) == 3
        assert len(set(head.keys)) == 1
        await admin.call("POST", "/deployments/mini/restart")
    assert len(set(head.keys)) == 2, "a key is of one request"


async def test_what_has_no_key_is_not_sent_again(head: Head) -> None:
    head.hangs_up = 1
    async with AdminTransport(f"http://127.0.0.1:{head.server_port}", lambda: "t") as admin:
        with pytest.raises(NoHeadAnswers):
            await admin.call("POST", "/adapters", content=b"files")
    assert head.keys == [None]
