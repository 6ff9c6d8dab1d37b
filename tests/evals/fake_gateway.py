"""Stands in for gateway and head: versions that answer as a test says, and where evidence goes."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "pst_fake"
KEY = "psk_fake"
DIGEST = "sha256:" + "ab" * 32
FAMILY = "mini"


@dataclass(frozen=True, slots=True)
class Said:
    """One answer of a version."""

    text: str = ""
    status: int = 200
    adapter: str | None = None  # what the header says; none: no such header
    finish_reason: str = "stop"
    body: bytes | None = None  # instead of a completion


Speaker = Callable[[str], Said]
"""From the last message to the answer."""

Scorer = Callable[[list[int]], list[float]]
"""From tokens to how likely each is, as natural logarithms."""


@dataclass(slots=True)
class FakeGateway:
    """What was asked, and what was put."""

    url: str = ""
    speakers: Mapping[str, Speaker] = field(default_factory=dict)  # by model
    scorers: Mapping[str, Scorer] = field(default_factory=dict)  # by model
    letters: int = 0  # what a letter's token is more than its code point
    asked: list[dict[str, Any]] = field(default_factory=list)  # to chat
    scored: list[dict[str, Any]] = field(default_factory=list)
    keys: set[str | None] = field(default_factory=set)
    evidence: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    evidence_status: int = 200


def saying(adapter: str | None, speech: Callable[[str], str]) -> Speaker:
    """A version that answers every prompt by a function, and names itself."""
    return lambda prompt: Said(speech(prompt), adapter=adapter)


@contextmanager
def fake_gateway(speakers: Mapping[str, Speaker]) -> Iterator[FakeGateway]:
    """Serves on a free port."""
    fake = FakeGateway(speakers=speakers)
    with served(_Server(fake)) as fake.url:
        yield fake


@contextmanager
def served(server: ThreadingHTTPServer) -> Iterator[str]:
    """Lets a server run; gives its address."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class CrowdedServer(ThreadingHTTPServer):
    """One that many may connect to at once: the kernel drops what its short queue does not hold."""

    request_queue_size = 256


class _Server(CrowdedServer):
    def __init__(self, fake: FakeGateway) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.fake = fake

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that ends its run leaves its connections as they are."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    @property
    def fake(self) -> FakeGateway:
        assert isinstance(self.server, _Server)
        return self.server.fake

    def do_POST(self) -> None:
        asked = self._body()
        if self.path == "/tokenize":
            self._reply(200, json.dumps({"tokens": self._tokens(asked)}).encode())
            return
        if self.path == "/v1/completions":
            self._score(asked)
            return
        self.fake.asked.append(asked)
        self.fake.keys.add(self.headers.get("authorization"))
        speaker = self.fake.speakers.get(asked["model"])
        if speaker is None:
            self._error(404, "model_not_found", f"there is no model {asked['model']}")
            return
        said = speaker(asked["messages"][-1]["content"])
        extra = {} if said.adapter is None else {"x-penstock-adapter-version": said.adapter}
        if said.body is not None:
            self._reply(said.status, said.body, extra)
        elif said.status != 200:
            self._error(said.status, "overloaded", "come again")
        elif asked.get("stream"):
            self._reply(200, streamed(said), extra, "text/event-stream")
        else:
            self._reply(200, json.dumps(_completion(said)).encode(), extra)

    def _tokens(self, asked: Mapping[str, Any]) -> list[int]:
        """A letter is a token, and a chat is its last message with a mark at each end."""
        text = asked["prompt"] if "prompt" in asked else f"<{asked['messages'][-1]['content']}>"
        return [ord(letter) + self.fake.letters for letter in text]

    def _score(self, asked: dict[str, Any]) -> None:
        self.fake.scored.append(asked)
        scorer = self.fake.scorers.get(asked["model"])
        if scorer is None:
            self._error(400, "no_logprobs", "this model tells no log probabilities")
            return
        tokens = asked["prompt"]
        told = zip(tokens, scorer(tokens), strict=True)
        entries: list[Any] = [{str(token): {"logprob": log}} for token, log in told]
        choice = {"index": 0, "text": "", "prompt_logprobs": [None, *entries[1:]]}
        self._reply(200, json.dumps({"choices": [choice]}).encode())

    def do_GET(self) -> None:
        if self.path == "/v1/models":
            self._reply(200, json.dumps({"data": [{"id": n} for n in self.fake.speakers]}).encode())
        elif self._allowed():
            told = {"adapter": self.path.rsplit("/", 1)[1], "digest": DIGEST, "family": FAMILY}
            self._reply(200, json.dumps({**told, "state": "candidate"}).encode())

    def do_PUT(self) -> None:
        body = self._body()
        if self._allowed():
            self.fake.evidence.append((self.path, body))
            self._reply(self.fake.evidence_status, b"{}")

    def _allowed(self) -> bool:
        right = self.headers.get("authorization") == f"Bearer {TOKEN}"
        if not right:
            self._error(401, "unauthorized", "a token is needed")
        return right

    def _body(self) -> Any:
        return json.loads(self.rfile.read(int(self.headers["content-length"])))

    def _error(self, status: int, code: str, message: str) -> None:
        self._reply(status, json.dumps({"error": {"code": code, "message": message}}).encode())

    def _reply(
        self,
        status: int,
        body: bytes,
        extra: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> None:
        self.send_response(status)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(body)))
        self.send_header("x-request-id", f"req-{len(self.fake.asked)}")
        for name, value in (extra or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Says nothing: tests tell what matters."""


def streamed(said: Said) -> bytes:
    """The answer as an event stream, word by word."""
    words = said.text.split(" ")
    deltas = [{"role": "assistant", "content": ""}, {"content": words[0]}]
    deltas += [{"content": f" {word}"} for word in words[1:]]
    choices: list[dict[str, Any]] = [{"index": 0, "delta": delta} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": said.finish_reason})
    chunks: list[dict[str, Any]] = [{"choices": [choice]} for choice in choices]
    chunks.append({"choices": [], "usage": {"completion_tokens": len(words), "prompt_tokens": 5}})
    events = [json.dumps(chunk) for chunk in chunks]
    return "".join(f"data: {event}\n\n" for event in [*events, "[DONE]"]).encode()


def _completion(said: Said) -> dict[str, Any]:
    message = {"role": "assistant", "content": said.text}
    choice = {"index": 0, "message": message, "finish_reason": said.finish_reason}
    return {"choices": [choice], "usage": {"completion_tokens": len(said.text.split())}}


__all__ = [
    "DIGEST",
    "FAMILY",
    "KEY",
    "TOKEN",
    "CrowdedServer",
    "FakeGateway",
    "Said",
    "Scorer",
    "fake_gateway",
    "saying",
    "served",
    "streamed",
]
