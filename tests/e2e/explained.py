"""A system whose requests are explained: two gateways, and a deployment for each thing that can
happen to a request."""

from __future__ import annotations

import itertools
import json
import threading
import urllib.parse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx

from tests.e2e import verbs
from tests.e2e.adapter_traffic import made, register
from tests.e2e.canary_traffic import is_ready
from tests.e2e.fleet import Fleet, fleet_of
from tests.e2e.ladder_traffic import canned
from tests.e2e.loads import metric
from tests.e2e.system import System, eventually, running

PACE: Final = {"tokens_per_second": "200", "answer_tokens": "8", "per_request": "1"}
FOREVER: Final = {"tokens_per_second": 5, "answer_tokens": 100}
# Of a provider whose key nobody has.
KEYLESS: Final = {"base_url": "http://127.0.0.1:1", "api_key_file": "none.key"}
BUDGET: Final = 8 << 20  # bytes
FEW: Final = 3  # requests at once that the second gateway takes
Json = dict[str, Any]
_numbers = itertools.count()


@dataclass(frozen=True)
class Asked:
    """How a request ended, as its client saw it."""

    id: str
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    error: Mapping[str, Any] = field(default_factory=dict)  # empty: there is none

    @property
    def reason(self) -> str:
        """Why admission said no."""
        return self.headers.get("x-penstock-drop-reason", "")


@dataclass(frozen=True)
class Told:
    """What is told of it afterwards."""

    record: Json  # by the API
    text: str  # by the command line
    line: Json  # by its gateway's log

    def says(self, *words: str) -> None:
        """The story has all of these."""
        assert [each for each in words if each not in self.text] == [], self.text


@dataclass(frozen=True)
class Explained:
    """The system, and the logs of its gateways."""

    system: System
    fleet: Fleet
    folder: Path
    seen: list[str] = field(default_factory=list)  # ids of all that were asked

    @property
    def where(self) -> tuple[str, ...]:
        """How its head is named on a command line."""
        return "--admin", f"127.0.0.1:{self.system.admin_port}", "--data-dir", str(self.system.data)

    def sets(self, deployment: str, **settings: object) -> None:
        """Changes what a deployment goes by."""
        self.system.change("PATCH", f"deployments/{deployment}/settings", settings)
        self.routes_are_known()

    def routes_are_known(self) -> None:
        """Returns when the head's gateway goes by what the head knows."""

        def known() -> bool:
            version: int = self.system.admin("version")["snapshot_version"]
            return version == int(metric(self.system, "penstock_gateway_snapshot_version"))

        eventually(known, within=20, what="a gateway that knows all")

    def ask(
        self, model: str = "sim", *, port: int = 0, key: str = "", headers: Json | None = None,
        content: bytes | None = None, **body: Any,
    ) -> Asked:  # fmt: skip
        """One request, which is like no other where nothing is said, and its whole answer."""
        body = {"model": model, "messages": question(), **body}
        sent = {"content-type": "application/json", **(headers or {})}
        sent |= {"authorization": f"Bearer {key}"} if key else {}
        content = json.dumps(body).encode() if content is None else content
        with httpx.Client(trust_env=False, timeout=30) as client:
            reply = client.post(self.url(port), content=content, headers=sent)
        return self.ended(reply, reply.text)

    def ended(self, reply: httpx.Response, text: str) -> Asked:
        """How one ended, streams included."""
        self.seen.append(reply.headers["x-request-id"])
        told = [line.removeprefix("data: ") for line in text.splitlines() if '"error":' in line]
        error = json.loads(told[-1])["error"] if told else {}
        return Asked(self.seen[-1], reply.status_code, dict(reply.headers), error)

    def url(self, port: int = 0) -> str:
        """Where chats are asked for."""
        return f"http://127.0.0.1:{port or self.system.gateway_port}/v1/chat/completions"

    @contextmanager
    def begun_soon(self, model: str, *, port: int = 0, **body: Any) -> Iterator[Stream]:
        """A stream that is asked for; its client leaves when the block ends and it has begun."""
        stream = Stream(self, self.url(port), {"model": model, "messages": question(), **body})
        stream.start()
        try:
            yield stream
        finally:
            stream.leave()

    @contextmanager
    def begun(self, model: str, *, port: int = 0, **body: Any) -> Iterator[Stream]:
        """The same, past its first event."""
        with self.begun_soon(model, port=port, **body) as stream:
            assert stream.begins.wait(30), body
            yield stream

    def leaves(self, model: str, name: str) -> None:
        """A client that calls its request so, and hangs up when it has waited for a while."""
        body = {"model": model, "messages": question()}
        headers = {"x-client-request-id": name}
        with httpx.Client(trust_env=False, timeout=0.3) as client, suppress(httpx.TimeoutException):
            client.post(self.url(), json=body, headers=headers)

    @contextmanager
    def busy(self, model: str = "narrow", *, port: int = 0) -> Iterator[Stream]:
        """The one place of a deployment is taken."""
        with self.begun(model, port=port, simulate=FOREVER) as stream:
            yield stream

    def told(self, asked: Asked) -> Told:
        """What is told of it; fails unless all say the same as its client was told."""
        found = self.found(asked.id)
        told = Told(found["record"], self.says("explain", asked.id), self.line(asked.id))
        record, line = told.record, told.line
        error = asked.error.get("message", "")
        code = asked.error.get("code") or ""
        assert (record["status"], record["drop_reason"]) == (asked.status, asked.reason)
        assert record["error_code"] == code
        # Of what a replica has worded, or quotes the request, the field at fault alone is kept.
        field = asked.error.get("param") or ""
        quoted = f"param: {field}" if field else ""
        assert record["message"] in (error[:300], error[:300] if asked.reason else quoted)
        assert line["status"] == asked.status
        assert line["outcome"] == record["outcome"]
        assert line.get("drop_reason", "") == asked.reason
        assert line.get("error_code", "") == code
        told.says(asked.id, str(asked.status), " ".join(record["message"].split()))
        if why := asked.reason or code or asked.headers.get("x-penstock-degraded", ""):
            told.says(f"({why})")
            assert asked.id in self.listed(reason=why, status=asked.status)
        return told

    def found(self, request_id: str) -> Json:
        """As the API explains it."""
        found: Json = self.system.admin(f"requests/{urllib.parse.quote(request_id, safe='')}")
        return found

    def listed(self, **wanted: object) -> list[str]:
        """The ids of those that are so."""
        query = urllib.parse.urlencode({"limit": 1000, **wanted})
        return [each["request_id"] for each in self.system.admin(f"requests?{query}")["requests"]]

    def says(self, *words: str) -> str:
        """What the command line prints."""
        return verbs.penstock(*words, *self.where)

    def line(self, request_id: str) -> Json:
        """The line that its gateway has written of it."""

        def find() -> Json | None:
            for line in self._lines():
                if request_id in line and '"request settled"' in line:
                    found: Json = json.loads(line)
                    return found
            return None

        line = eventually(find, within=10, what=f"a line of {request_id}")
        assert line is not None
        return line

    def _lines(self) -> Iterator[str]:
        logs = [*self.system.data.rglob("gateway-*.log"), self.folder / "gw-2" / "gateway.log"]
        return itertools.chain.from_iterable(log.read_text().splitlines() for log in logs)


class Stream(threading.Thread):
    """A stream that a client reads."""

    def __init__(self, of: Explained, url: str, body: Json) -> None:
        super().__init__(daemon=True)
        self._of, self._url, self._body = of, url, {**body, "stream": True}
        self._leaves = threading.Event()
        self.begins = threading.Event()  # its first event has come, or none will
        self.asked: Asked | None = None  # how it ended
        self.replica = ""

    def run(self) -> None:
        """Until its end, or its client leaves."""
        text = ""
        with (
            httpx.Client(trust_env=False, timeout=30) as client,
            client.stream("POST", self._url, json=self._body) as reply,
        ):
            self.replica = reply.headers.get("x-penstock-replica", "")
            with suppress(httpx.RemoteProtocolError):  # an error is told, then it is closed
                for part in reply.iter_text():
                    text += part
                    self.begins.set()
                    if self._leaves.is_set():
                        break
            self.asked = self._of.ended(reply, text)
        self.begins.set()

    def leave(self) -> None:
        """Hangs up, if it has not ended."""
        self._leaves.set()
        self.join(timeout=30)

    def whole(self) -> Asked:
        """How it ended by itself."""
        self.join(timeout=30)
        assert self.asked is not None, "it has not ended"
        return self.asked


def question() -> list[Json]:
    """One that nobody else asks."""
    return [{"role": "user", "content": f"What is a gateway, said in way {next(_numbers)}?"}]


@contextmanager
def explained(folder: Path) -> Iterator[Explained]:
    """`sim` has two replicas and two adapters, `narrow` one place, `canned` a text, `refusing` an
    engine that has never a place, `led` a router program, `asleep` no replica; `broken` cannot be
    started."""
    args = " ".join(f"{name}={value}" for name, value in PACE.items())
    options = ("--engine", "simulated", "--name", "sim", "--engine-args", args)
    more = ("--max-adapters", "2", "--explain-budget-bytes", str(BUDGET))
    with running(folder, *options, *more, replicas=2, within=60) as system:
        _deploy(system)
        with fleet_of(system, folder, 2, "--max-in-flight", str(FEW)) as fleet:
            fleet.new_key()  # the first one closes the door to those that have none
            system.change("PUT", "access", {"anonymous": "allowed"})
            for name in ("a@1", "b@1"):
                register(system, "sim", name, made(folder, name))
            for name, count in {"narrow": 1, "refusing": 1, "led": 2}.items():
                is_ready(system, name, count)
            found = Explained(system, fleet, folder)
            found.routes_are_known()
            yield found


def _deploy(system: System) -> None:
    engine: Json = {"engine": "simulated", "model": "m"}
    led: Json = {"replicas": 2, "roles": {"prefill": 1, "decode": 1}, "microserving": "on"}
    specs: dict[str, Json] = {
        "narrow": {"engine_args": {**PACE, "kv_blocks": "64"}, "max_ongoing": 1},
        "refusing": {"engine_args": {"refuse_share": "1"}},
        "led": {"engine_args": PACE, "program_deadline_ms": 2000, **led},
        "asleep": {"replicas": 0},
        "broken": {"engine": "openai", "engine_args": KEYLESS},
    }
    for name, spec in specs.items():
        system.change("POST", "deployments", {"name": name, **engine, **spec})
    canned(system, "canned")
