"""One stream of a gateway: asks come in, each is a task of its own; calls and decisions go out.

No frame is a reason to fail: what names nothing known is passed over.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import Any, Final

from penstock.control.router.api import (
    Engine,
    EngineCallError,
    Engines,
    Kv,
    KvAddress,
    Request,
    RouteDecision,
)
from penstock.control.router.program import Program, printable, said
from penstock.control.router.stats import Stats
from penstock.v1 import router_pb2
from penstock.v1.router_pb2 import EngineCall, EngineReply, EngineVerb, RouteAsk

log = logging.getLogger(__name__)

MOST_ASKS: Final = 1024  # under way at once, of all streams
MOST_CALLS: Final = 64  # of one ask
MOST_AT_ONCE: Final = 16  # of these
MOST_WORDS: Final = 256  # of a frame, which a gateway takes up to 256 KiB of
MOST_SEQ_ID: Final = 64  # bytes
RAISED: Final = "raised"
NONSENSE: Final = "nonsense"
UNKNOWN: Final = "unknown_program"
BLAMED: Final = ("bad_request", "not_in_uses", "too_many_calls")
"""Causes that are the program's own fault; of others it need not know."""


class Programs:
    """What this process runs: the programs by digest, what each records, and who is under way."""

    def __init__(self) -> None:
        self.programs: dict[str, Program] = {}
        self.stats: dict[str, Stats] = {}
        self.under_way: set[Ask] = set()

    def add(self, *programs: Program) -> None:
        """These can be asked from now on."""
        for each in programs:
            self.programs[each.digest] = each
            self.stats[each.digest] = Stats()

    def stuck(self, seconds: float) -> str:
        """The request whose program goes on though nobody wants it any more; empty: none."""
        late = monotonic() - seconds
        return next((ask.request.id or "?" for ask in self.under_way if ask.ended < late), "")


class Conversation:
    """What was asked on one stream; `tasks` ends when the stream does."""

    def __init__(self, programs: Programs, tasks: asyncio.TaskGroup) -> None:
        self._programs = programs
        self._tasks = tasks
        self._asks: dict[int, Ask] = {}
        self._words: deque[EngineCall | router_pb2.RouteDecision] = deque()
        self._has_more = asyncio.Event()

    def receive(self, frame: router_pb2.GatewayFrame) -> None:
        """Takes a frame of the gateway."""
        for ask in frame.asks:
            self._ask(ask)
        for reply in frame.replies:
            if known := self._asks.get(reply.ask_id):
                known.replied(reply)
        for ask_id in frame.cancels:
            if known := self._asks.pop(ask_id, None):
                known.cancel()

    async def next_frame(self) -> router_pb2.ProgramFrame:
        """What is to be sent, as soon as there is something."""
        await self._has_more.wait()
        frame = router_pb2.ProgramFrame()
        for _ in range(min(MOST_WORDS, len(self._words))):
            word = self._words.popleft()
            if isinstance(word, EngineCall):
                frame.calls.append(word)
            else:
                frame.decisions.append(word)
        if not self._words:
            self._has_more.clear()
        return frame

    def close(self) -> None:
        """Nobody wants anything of it any more."""
        for ask in self._asks.values():
            ask.cancel()
        self._asks.clear()

    def send(self, word: EngineCall | router_pb2.RouteDecision) -> None:
        """Says it to the gateway."""
        self._words.append(word)
        self._has_more.set()

    def _ask(self, asked: RouteAsk) -> None:
        program = self._programs.programs.get(asked.program_digest)
        if asked.ask_id == 0 or asked.ask_id in self._asks:
            log.warning("an ask has id 0, or that of another: passed over")
        elif program is None:
            self.send(_failed(asked.ask_id, UNKNOWN, asked.program_digest[:MOST_SEQ_ID]))
        elif len(self._programs.under_way) >= MOST_ASKS:
            self.send(_failed(asked.ask_id, RAISED, f"{MOST_ASKS} requests wait for it already"))
        else:
            ask = Ask(asked, self.send)
            self._asks[asked.ask_id] = ask
            self._programs.under_way.add(ask)
            ask.task = self._tasks.create_task(self._run(program, ask, asked))

    async def _run(self, program: Program, ask: Ask, asked: RouteAsk) -> None:
        try:
            stats = self._programs.stats[program.digest]
            decision = await run(program, ask, asked, stats)
            if self._asks.get(ask.id) is ask:  # else nobody wants to know
                del self._asks[ask.id]
                self.send(decision)
        finally:
            ask.end()
            self._programs.under_way.discard(ask)


class Ask:
    """One request that a program decides; a `Calls`."""

    def __init__(self, asked: RouteAsk, send: Callable[[EngineCall], None]) -> None:
        self.id = asked.ask_id
        self.request = Request(asked)
        self.task: asyncio.Task[Any] | None = None
        self.ended = float("inf")  # when nobody wanted it any more
        self._send = send
        self._waiting: dict[int, asyncio.Future[EngineReply]] = {}
        self._calls = 0
        self._leases = 0

    def new_seq_id(self) -> str:
        """Of a lease, unique within the ask."""
        self._leases += 1
        return str(self._leases)

    async def call(self, call: EngineCall) -> EngineReply:
        """Has the gateway make it. Raises EngineCallError where it is not asked."""
        if self.ended < float("inf"):
            raise EngineCallError("unavailable", "the request has been decided, or has gone")
        if self._calls >= MOST_CALLS or len(self._waiting) >= MOST_AT_ONCE:
            most = f"{MOST_CALLS} of one request, {MOST_AT_ONCE} at once"
            raise EngineCallError("too_many_calls", most)
        self._calls += 1
        call.ask_id, call.call_id = self.id, self._calls
        future: asyncio.Future[EngineReply] = asyncio.get_running_loop().create_future()
        self._waiting[call.call_id] = future
        self._send(call)
        try:
            return await future
        finally:
            self._waiting.pop(call.call_id, None)

    def replied(self, reply: EngineReply) -> None:
        """What became of a call."""
        future = self._waiting.get(reply.call_id)
        if future is not None and not future.done():
            future.set_result(reply)

    def cancel(self) -> None:
        """Ends it, as far as the program lets it end."""
        self.end()
        if self.task is not None:
            self.task.cancel()

    def end(self) -> None:
        """It calls nobody any more."""
        self.ended = min(self.ended, monotonic())


class _Uses:
    """A `Calls` that lets through what the program has named."""

    def __init__(self, ask: Ask, uses: frozenset[str]) -> None:
        self._ask = ask
        self._uses = uses
        self.new_seq_id = ask.new_seq_id

    async def call(self, call: EngineCall) -> EngineReply:
        verb = EngineVerb.Name(call.verb).removeprefix("ENGINE_VERB_").lower()
        if verb not in self._uses:
            raise EngineCallError("not_in_uses", f"USES does not name {verb}")
        return await self._ask.call(call)


async def run(
    program: Program, ask: Ask, asked: RouteAsk, stats: Stats
) -> router_pb2.RouteDecision:
    """What the program says, or how it failed. Where an engine call failed that it did not catch,
    the gateway's own policy decides."""
    calls = _Uses(ask, program.uses)
    engines = Engines(Engine(view, calls, stats) for view in asked.engines)
    try:
        args = json.loads(asked.args) if asked.args else {}
        found = await program.route(ask.request, engines, stats, **args)
        return decision_of(ask.id, engines, found)
    except EngineCallError as error:
        if error.cause in BLAMED:
            return _failed(ask.id, RAISED, said(error, program.filename))
        return router_pb2.RouteDecision(ask_id=ask.id)
    except BaseException as error:
        if isinstance(error, asyncio.CancelledError) and ask.ended < float("inf"):
            raise
        detail = said(error, program.filename)
        log.warning("the program failed: %s", detail, extra={"request_id": ask.request.id})
        return _failed(ask.id, RAISED, detail)


def decision_of(ask_id: int, engines: Engines, found: object) -> router_pb2.RouteDecision:
    """What a program returned, as the gateway is told it."""
    if found is None:
        return router_pb2.RouteDecision(ask_id=ask_id)
    if type(found) is not RouteDecision:
        return _failed(ask_id, NONSENSE, f"returned a {type(found).__name__}")
    chosen = found.replica.id if isinstance(found.replica, Engine) else found.replica
    if not isinstance(chosen, str) or engines.get(chosen) is None:
        return _failed(ask_id, NONSENSE, f"chose {printable(repr(chosen), 64)}, no engine of it")
    seq_id, begin = "", 0
    if isinstance(found.kv, KvAddress):
        seq_id, begin = found.kv.seq_id, found.kv.end
    elif isinstance(found.kv, Kv):
        seq_id, begin = found.kv.seq_id, found.kv.begin
    elif found.kv is not None:
        return _failed(ask_id, NONSENSE, f"kv is a {type(found.kv).__name__}")
    usable = isinstance(seq_id, str) and len(seq_id.encode("utf-8", "replace")) <= MOST_SEQ_ID
    if not usable or not isinstance(begin, int) or not 0 <= begin < 1 << 32:
        return _failed(ask_id, NONSENSE, "kv has a seq_id or a begin that nothing has")
    return router_pb2.RouteDecision(ask_id=ask_id, replica_id=chosen, seq_id=seq_id, begin=begin)


def _failed(ask_id: int, error: str, detail: str) -> router_pb2.RouteDecision:
    return router_pb2.RouteDecision(ask_id=ask_id, error=error, detail=printable(detail))
