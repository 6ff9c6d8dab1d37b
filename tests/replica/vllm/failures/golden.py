"""Wrong requests with what stock vLLM says of them and what the replica says, kept in a file.

`wrong_requests.json` holds the cases. By hand are written a name, an engine (`text`, or `vectors`
for one that pools), an endpoint, a request (an object, or text that is sent as it is) and, where
status or param differ from vLLM's, a `deviation` that says why; `vllm` and `penstock` are what was
answered. To make these anew after a change, and read the difference:

    .venv/bin/python -m tests.replica.vllm.failures.golden
    git diff tests/replica/vllm/failures/wrong_requests.json

In requests {"times": ["word ", 20000]} stands for the text, or the list's entries, so many times.
"""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import AsyncExitStack
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from penstock.replica.values import AdapterSource, Failed
from penstock.replica.vllm.engine import VllmEngine
from tests.fakes.engine_nursery import NurseryEngine
from tests.replica.vllm.talking import ask

FILE: Final = Path(__file__).with_name("wrong_requests.json")
SETTINGS: Final[dict[str, dict[str, str]]] = {
    "text": {
        "max_num_batched_tokens": "256",
        "structured_outputs_config": '{"backend": "xgrammar", "disable_any_whitespace": true}',
    },
    "vectors": {"runner": "pooling", "convert": "embed"},
}
_KEPT: Final = 300
_TIMES: Final = re.compile(r"\[\d\d:\d\d:\d\d\]")

Case = dict[str, Any]


def cases() -> list[Case]:
    """All cases of the file."""
    found: list[Case] = json.loads(FILE.read_text())
    return found


def body(case: Case) -> bytes:
    """The bytes that a case sends."""
    request = case["request"]
    if isinstance(request, str):
        return request.encode()
    return json.dumps(_unfolded({"model": "penstock-mini"} | request)).encode()


def _unfolded(value: Any) -> Any:
    match value:
        case {"times": [str() | list() as part, int(count)]}:
            return part * count
        case dict():
            return {name: _unfolded(one) for name, one in value.items()}
        case list():
            return [_unfolded(one) for one in value]
        case _:
            return value


def engine(kind: str) -> VllmEngine:
    """An engine that is not started yet."""
    adapters = (AdapterSource("pirate@1", "penstock-mini/pirate"),) if kind == "text" else ()
    forked = NurseryEngine()
    return VllmEngine("penstock-mini", "penstock-mini", adapters, SETTINGS[kind], forked=forked)


class Stock:
    """vLLM's own app with its own handlers, over an engine that the replica also serves with."""

    def __init__(self, app: Any) -> None:
        self._app = app

    @classmethod
    async def over(cls, engine: VllmEngine) -> Stock:
        from vllm.entrypoints.launchers.api_server.app_state import init_app_state
        from vllm.entrypoints.launchers.app import build_app

        launched = engine.launched
        tasks = await launched.llm.get_supported_tasks()
        app = build_app(launched.args, tasks, launched.llm.model_config)
        await init_app_state(launched.llm, app.state, launched.args, tasks)
        app.state.server = SimpleNamespace(should_exit=False)
        return cls(app)

    async def said(self, case: Case) -> dict[str, Any]:
        """Status, param and message that it answers a case with."""
        status, content = await self._post(case["endpoint"], body(case))
        error = _error(content)
        if status == 200 and error:
            # Told inside a stream.
            status = int(error.get("code") or 500)
        message = _TIMES.sub("[time]", str(error.get("message", "")))[:_KEPT]
        return {"status": status, "param": error.get("param"), "message": message}

    async def _post(self, path: str, content: bytes) -> tuple[int, bytes]:
        status, answer = 0, b""
        sent = asyncio.Event()

        async def receive() -> dict[str, Any]:
            if sent.is_set():
                await asyncio.Future()
            sent.set()
            return {"type": "http.request", "body": content, "more_body": False}

        async def send(message: Any) -> None:
            nonlocal status, answer
            status = message.get("status", status)
            answer += message.get("body", b"")

        try:
            await self._app(_scope(path), receive, send)
        except Exception as error:  # as its server does: the connection ends
            if not status:
                raise
            answer = answer or repr(error).encode()
        return status, answer


def _scope(path: str) -> dict[str, Any]:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "client": ("127.0.0.1", 1),
        "server": ("stock", 80),
        "state": {},
        "headers": [(b"content-type", b"application/json")],
    }


def _error(content: bytes) -> dict[str, Any]:
    """The error object of an answer, or of the first event of a stream that tells one."""
    events = content.decode(errors="replace").split("\n\n") if content else []
    for event in events:
        text = event.partition("data: ")[2] or event
        try:
            parsed = json.loads(text)
        except ValueError:
            continue
        if isinstance(parsed, dict) and isinstance(parsed.get("error"), dict):
            error: dict[str, Any] = parsed["error"]
            return error
    return {}


async def ours(engine: VllmEngine, case: Case) -> dict[str, Any]:
    """What the replica answers a case with."""
    end = (await ask(engine, body(case), case["endpoint"])).end
    if not isinstance(end, Failed):
        return {"status": 200, "type": "", "code": "", "param": "", "message": ""}
    said = asdict(end)
    return {name: said[name] for name in ("status", "type", "code", "param", "message")}


def differs(stock: dict[str, Any], own: dict[str, Any], endpoint: str) -> bool:
    """Whether status or param are others than vLLM's.

    "body." before a field is where FastAPI found it, and no part of its name. The errors of
    Anthropic's API have no param.
    """
    param = (stock["param"] or "").removeprefix("body.")
    told = endpoint.startswith("/v1/messages") or param == own["param"]
    return stock["status"] != own["status"] or not told


async def make_anew() -> None:
    """Asks both about every case, and writes the file."""
    found = cases()
    async with AsyncExitStack() as stack:
        for kind in SETTINGS:
            started = engine(kind)
            stack.push_async_callback(started.stop)
            await started.start()
            stock = await Stock.over(started)
            for case in (one for one in found if one["engine"] == kind):
                case["vllm"] = await stock.said(case)
                case["penstock"] = await ours(started, case)
                if differs(case["vllm"], case["penstock"], case["endpoint"]):
                    case.setdefault("deviation", "")
    FILE.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    asyncio.run(make_anew())
