"""Lists of a head that has many."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest
from pydantic import BaseModel, TypeAdapter

from penstock.control.outside.admin_transport import PAGE, AdminTransport


class Named(BaseModel):
    name: str


class Head(ThreadingHTTPServer):
    """Has so many; `asked`: the queries."""

    many = 0

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.asked: list[dict[str, list[str]]] = []

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
