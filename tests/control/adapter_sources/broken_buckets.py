"""Servers that begin as S3 does and go on otherwise."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

from tests.control.adapter_sources.files import FILES


class BrokenBucket(BaseHTTPRequestHandler):
    """One request; `answer` says what comes, `over` ends what would not end by itself."""

    protocol_version = "HTTP/1.1"
    answer: Callable[[BrokenBucket], None]
    over: Event
    seen: list[str]

    def do_GET(self) -> None:
        """Of any path."""
        self.seen.append(f"{self.path} {self.headers.get('range', '')}".strip())
        self.close_connection = True
        with suppress(OSError):  # the client has gone
            type(self).answer(self)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the tests look at `seen`."""

    def begin(self, status: int, length: int | None = None, **headers: str) -> None:
        """The head of an answer."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if length is not None:
            self.send_header("content-length", str(length))
        self.send_header("connection", "close")  # or a client asks again where nobody reads
        self.end_headers()

    @property
    def file(self) -> bytes:
        """What the path names."""
        return FILES[self.path.rpartition("/")[2]]


@dataclass(frozen=True)
class Served:
    """A server: its address, and what it was asked for."""

    url: str
    seen: list[str]


@contextmanager
def bucket(answer: Callable[[BrokenBucket], None]) -> Iterator[Served]:
    """A server for the block."""
    over, seen = Event(), list[str]()
    kind = type("Bucket", (BrokenBucket,), {"answer": answer, "over": over, "seen": seen})
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    server.daemon_threads = False
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield Served(f"http://127.0.0.1:{server.server_port}", seen)
    finally:
        over.set()
        server.shutdown()
        server.server_close()
        thread.join()


def stalled(request: BrokenBucket) -> None:
    """Some bytes, then silence."""
    request.begin(200, 1000)
    request.wfile.write(b"{" * 10)
    request.over.wait()


def silent(request: BrokenBucket) -> None:
    """Not even a status."""
    request.over.wait()


def trickling(request: BrokenBucket) -> None:
    """A byte now and then, for ever."""
    request.begin(200)
    while not request.over.wait(0.02):
        request.wfile.write(b"{")


def endless(request: BrokenBucket) -> None:
    """As many bytes as anybody reads."""
    request.begin(200)
    while not request.over.is_set():
        request.wfile.write(bytes(1 << 16))


def huge(request: BrokenBucket) -> None:
    """A length that is more than anybody takes, and nothing of it."""
    request.begin(200, 1 << 50)
    request.over.wait()


def torn(request: BrokenBucket) -> None:
    """Half of what is asked for, each time."""
    found = re.fullmatch(r"bytes=(\d+)-", request.headers.get("range", ""))
    at = int(found[1]) if found else 0
    rest = request.file[at:]
    place = {"content_range": f"bytes {at}-{len(request.file) - 1}/{len(request.file)}"}
    request.begin(206 if found else 200, len(rest), etag='"one"', **(place if found else {}))
    request.wfile.write(rest[: len(rest) // 2 + 1])


def torn_and_forgetful(request: BrokenBucket) -> None:
    """Half of the object, from its beginning, whatever is asked for."""
    request.begin(200, len(request.file), etag='"one"')
    request.wfile.write(request.file[: len(request.file) // 2])


def torn_and_changed(request: BrokenBucket) -> None:
    """Half of the object, which is another one when it is asked for again."""
    if "range" in request.headers:
        request.begin(412, 0)
    else:
        torn_and_forgetful(request)


def failing(request: BrokenBucket) -> None:
    """An error that passes, perhaps."""
    request.begin(503, 0)


def no_bucket(request: BrokenBucket) -> None:
    """What a web server says of a path that it does not know."""
    request.begin(404, 4, content_type="text/html")
    request.wfile.write(b"nope")


def expired(request: BrokenBucket) -> None:
    """Credentials that were good once."""
    body = b"<Error><Code>ExpiredToken</Code><Message>secret-token</Message></Error>"
    request.begin(400, len(body))
    request.wfile.write(body)


def elsewhere(request: BrokenBucket) -> None:
    """A bucket of another region."""
    body = b"<Error><Code>IllegalLocationConstraintException</Code></Error>"
    request.begin(400, len(body))
    request.wfile.write(body)
