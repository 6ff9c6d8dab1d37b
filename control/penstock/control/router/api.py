"""What a router program is given, and what it may call. Engine calls go to the gateway that asked.

A program never sees a prompt unless its deployment says so: `request` is a handle.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from random import random
from typing import Final, Protocol

from penstock.control.router.stats import Stats, Value
from penstock.v1.router_pb2 import EngineCall, EngineReply, EngineVerb, EngineView, RouteAsk

TO_THE_END: Final = 2**32 - 1  # of the prompt, whatever its length
ROLES: Final = ("prefill", "decode")
VERBS: Final = frozenset(
    name.removeprefix("ENGINE_VERB_").lower() for name, number in EngineVerb.items() if number
)
LOOKED_UP_AT_ONCE: Final = 8  # engines


class EngineCallError(Exception):
    """An engine call that was not done. `cause`: one word, as router.proto's EngineReply.error."""

    def __init__(self, cause: str, detail: str = "") -> None:
        super().__init__(f"{cause}: {detail}" if detail else cause)
        self.cause = cause


@dataclass(frozen=True, slots=True)
class Kv:
    """What was prepared for a request: the lease, and the tokens that may be expected there."""

    seq_id: str
    begin: int


@dataclass(frozen=True, slots=True)
class KvAddress:
    """A lease at an engine, for `remote_send`. Where it lies in memory the gateway knows."""

    seq_id: str
    replica_id: str
    matched_len: int  # tokens whose KV was there already
    end: int  # as rounded to whole blocks


@dataclass(frozen=True, slots=True)
class Tokenized:
    """A prompt in tokens. `token_ids` and `body` are empty unless the program `sees: tokens`."""

    length: int
    block_size: int
    block_hashes: tuple[int, ...]
    token_ids: tuple[int, ...]
    body: bytes


@dataclass(frozen=True, slots=True)
class Sent:
    """What a transfer moved."""

    moved_tokens: int
    moved_bytes: int
    transfer_us: int


class Calls(Protocol):
    """Has engine calls made for one ask."""

    async def call(self, call: EngineCall) -> EngineReply:
        """Its reply, whatever that says. Raises EngineCallError where nobody is asked."""

    def new_seq_id(self) -> str:
        """Of a lease, unique within the ask."""


class Request:
    """Who asks what; the prompt itself stays in the gateway."""

    __slots__ = (
        *("id", "deployment", "path", "adapter", "session", "category"),
        *("estimated_tokens", "deadline_ms"),
    )

    def __init__(self, ask: RouteAsk) -> None:
        self.id: str = ask.request_id
        self.deployment: str = ask.deployment
        self.path: str = ask.path  # "/v1/chat/completions"
        self.adapter: str = ask.adapter  # "name@version"; empty: the base model
        self.session: str = ask.session  # hash of the client's session; empty: none
        self.category: str = ask.category  # x-penstock-category; empty: none
        self.estimated_tokens: int = ask.estimated_tokens  # of the prompt
        self.deadline_ms: int = ask.deadline_ms  # that the request has left; 0: no deadline


class Engine:
    """A replica that the request may go to, as it was when the gateway asked."""

    __slots__ = (
        *("_calls", "_stats", "decoding", "id", "kv_usage", "moves_kv"),
        *("places_left", "role", "running", "waiting", "waiting_tokens"),
    )

    def __init__(self, view: EngineView, calls: Calls, stats: Stats) -> None:
        self._calls = calls
        self._stats = stats
        self.id: str = view.replica_id
        self.role: str = view.role  # "prefill", "decode"; empty: none
        self.running: int = view.running
        self.waiting: int = view.waiting
        self.waiting_tokens: int = view.waiting_tokens  # of prompts, to be computed yet
        self.kv_usage: float = view.kv_usage  # 0 to 1
        self.places_left: int = view.places_left  # calls that it would take now
        self.moves_kv: bool = view.moves_kv  # whether it has the calls below
        self.decoding: int = view.decoding  # calls of this gateway that generate there

    @property
    def load(self) -> int:
        """Calls that it has."""
        return max(self.running + self.waiting, self.decoding)

    @property
    def routing_stats(self) -> Mapping[str, Value]:
        """What was recorded of it by `stats.record_routing_stats(engine, ...)`."""
        return self._stats.routing_stats(self)

    async def tokenize(self, request: Request) -> Tokenized:
        """The prompt by the model's own template and tokenizer."""
        done = await self._call("tokenize")
        return Tokenized(
            done.length,
            done.block_size,
            tuple(done.block_hashes),
            tuple(done.token_ids),
            done.body,
        )

    async def lookup(self, request: Request) -> int:
        """How many of the prompt's tokens have their KV here, from its beginning."""
        return (await self._call("lookup")).matched_len

    async def prep_recv(self, request: Request, end: int | None = None) -> tuple[KvAddress, int]:
        """Leases room for the KV of the prompt's first `end` tokens; all: None. Second: how many
        of them are here already."""
        seq_id = self._calls.new_seq_id()
        done = await self._call("prep_recv", seq_id=seq_id, end=_end(end))
        return KvAddress(seq_id, self.id, done.matched_len, done.end), done.matched_len

    async def remote_send(
        self, kv_addr: KvAddress, begin: int | None = None, end: int | None = None
    ) -> Sent:
        """Computes the KV from `begin` to `end` here, as far as it is not here, and sends it to
        that lease. Left out: all that the lease lacks; where that is nothing, nobody is asked."""
        begin = kv_addr.matched_len if begin is None else max(0, begin)
        end = kv_addr.end if end is None else min(end, kv_addr.end)
        if begin >= end:
            return Sent(0, 0, 0)
        done = await self._call(
            "remote_send",
            to_replica_id=kv_addr.replica_id,
            seq_id=kv_addr.seq_id,
            begin=begin,
            end=end,
        )
        return Sent(done.moved_tokens, done.moved_bytes, done.transfer_us)

    async def commit(self, kv_addr: KvAddress) -> int:
        """Closes the lease to its sender; how many of the prompt's tokens have their KV here now.
        A decision with that lease does it by itself."""
        return (await self._call("commit", seq_id=kv_addr.seq_id)).matched_len

    async def release(self, kv_addr: KvAddress) -> None:
        """Ends the lease. The gateway does it with each that the decision does not name."""
        await self._call("release", seq_id=kv_addr.seq_id)

    async def migrate(self, request: Request, to: Engine, end: int | None = None) -> Sent:
        """Moves the KV of the prompt's first `end` tokens from here into the prefix cache there;
        all: None. Nothing is generated."""
        seq_id = self._calls.new_seq_id()
        done = await self._call("migrate", to_replica_id=to.id, seq_id=seq_id, end=_end(end))
        return Sent(done.moved_tokens, done.moved_bytes, done.transfer_us)

    async def _call(
        self,
        verb: str,
        *,
        to_replica_id: str = "",
        seq_id: str = "",
        begin: int = 0,
        end: int = 0,
    ) -> EngineReply:
        reply = await self._calls.call(
            EngineCall(
                verb=f"ENGINE_VERB_{verb.upper()}",
                replica_id=self.id,
                to_replica_id=to_replica_id,
                seq_id=seq_id,
                begin=begin,
                end=end,
            )
        )
        if reply.error:
            raise EngineCallError(reply.error, reply.detail)
        return reply

    def __repr__(self) -> str:
        return f"Engine({self.id!r})"


class EngineGroup(tuple[Engine, ...]):
    """Engines to choose from; each method that chooses returns None where there are none."""

    __slots__ = ()

    @property
    def moving(self) -> EngineGroup:
        """Those that can move KV."""
        return EngineGroup(each for each in self if each.moves_kv)

    def but(self, *others: Engine | None) -> EngineGroup:
        """All but these."""
        return EngineGroup(each for each in self if each not in others)

    def get(self, engine_id: object) -> Engine | None:
        """The one of that id."""
        return next((each for each in self if each.id == engine_id), None)

    def least_loaded(self) -> Engine | None:
        """The one with the fewest calls, of those with a place; of equals any."""
        return _least(self, lambda each: (each.load, each.waiting_tokens))

    def shortest_queue(self) -> Engine | None:
        """The one with the fewest tokens to compute, of those with a place; of equals any."""
        return _least(self, lambda each: (each.waiting_tokens, each.load))

    async def most_cached(self, request: Request) -> tuple[Engine | None, int]:
        """The one that holds most of the prompt's KV, and how many tokens of it; asks the eight
        with the least load. One that does not say holds nothing."""
        ranked = sorted(self, key=lambda each: (each.places_left <= 0, each.load))
        asked = ranked[:LOOKED_UP_AT_ONCE]
        found = await asyncio.gather(*(_held(each, request) for each in asked))
        return max(zip(asked, found, strict=True), key=lambda pair: pair[1], default=(None, 0))


class Engines(EngineGroup):
    """All engines that the request may go to, and those of each role."""

    __slots__ = ()

    @property
    def all(self) -> EngineGroup:
        """Every one."""
        return self

    @property
    def prefill(self) -> EngineGroup:
        """Those of role prefill; where no engine has that, all."""
        return self._of("prefill")

    @property
    def decode(self) -> EngineGroup:
        """Those of role decode; where no engine has that, all."""
        return self._of("decode")

    def _of(self, role: str) -> EngineGroup:
        return EngineGroup(each for each in self if each.role == role) or EngineGroup(self)


@dataclass(frozen=True, slots=True)
class RouteDecision:
    """Where to generate, with what was prepared there."""

    replica: Engine | str
    kv: Kv | KvAddress | None = None


BUILTINS: Final[Mapping[str, object]] = {
    each.__name__: each for each in (RouteDecision, Kv, EngineCallError)
}
"""Names that every program has without an import."""


def _end(end: int | None) -> int:
    """As the gateway is told it, for whom 0 is the whole prompt; so is what no prompt reaches."""
    return TO_THE_END if end is None else max(1, min(int(end), TO_THE_END))


def _least(engines: Iterable[Engine], rank: Callable[[Engine], tuple[int, int]]) -> Engine | None:
    return min(
        engines, key=lambda each: (each.places_left <= 0, *rank(each), random()), default=None
    )


async def _held(engine: Engine, request: Request) -> int:
    try:
        return await engine.lookup(request)
    except EngineCallError:
        return 0
