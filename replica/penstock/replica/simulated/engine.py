"""The simulated engine: deterministic answers on a timing model, without a model.

Its work is native (native/simulated/). This module checks its settings, and is the `Engine` that
the rest of the replica sees: calls from the network never pass here, calls of the replica itself
(deep health) do.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import Field, asdict, dataclass, field, fields, replace
from importlib.metadata import version
from typing import Any

from penstock.adapters.shown import public_name
from penstock.replica import _server
from penstock.replica.adapters.table import AdapterTable, load_named
from penstock.replica.adapters.values import AdapterRoom
from penstock.replica.calls import wire
from penstock.replica.calls.answers import events_of
from penstock.replica.calls.inbox import Inbox, Kind
from penstock.replica.engine import Sink
from penstock.replica.microserving.service import MicroServing
from penstock.replica.microserving.values import MicroServingError, Sending
from penstock.replica.simulated.adapters import SimulatedWeights, WantedAdapters, share_that_fails
from penstock.replica.simulated.kv_transfer import Pace
from penstock.replica.simulated.microserving import BLOCK, KvSettings, SimulatedMicroServing
from penstock.replica.values import (
    AdapterSource,
    Call,
    CannotLoad,
    Chunk,
    Death,
    EngineError,
    EngineFacts,
    EngineKind,
    Event,
    Failed,
    Finished,
    Head,
    KvHint,
    LoadFigures,
    Usage,
)
from penstock.v1 import inference_pb2

MAX_MODEL_LEN = 1 << 20
_MOST = 1_000_000_000
WRONG_WAKES = ("", "base", "adapter", "slow")
_ENDPOINTS = ("/v1/chat/completions", "/v1/completions")


def _within(least: float, most: float, default: float) -> Any:
    """A number's ends, and what it is where nobody says."""
    return field(default=default, metadata={"within": (least, most)})


@dataclass(frozen=True, slots=True)
class SimulatedSettings:
    """How a simulated engine behaves."""

    ttft_ms: int = _within(0, 3_600_000, 0)  # milliseconds from getting a slot to the first token
    tokens_per_second: float = _within(0, 1_000_000, 0.0)  # of each stream; 0: as fast as it goes
    answer_tokens: int = _within(1, MAX_MODEL_LEN, 64)  # when the request names no limit
    max_running: int = _within(1, _MOST, 4096)  # streams at once; others wait
    die_after_tokens: int = _within(0, _MOST, 0)  # of one call: the engine dies; 0: never
    hang_after_tokens: int = _within(0, _MOST, 0)  # of one call: it stops for all calls; 0: never
    kv_blocks: int = _within(0, _MOST, 0)  # of 16 tokens, for whole answers; 0: not simulated
    refuse_share: float = _within(0, 1, 0.0)  # share of requests refused with queue_full: 0..1
    per_request: int = _within(0, 1, 0)  # 1: a request may override by its field "simulate"
    prefill_tokens_per_second: float = _within(0, _MOST, 0.0)  # of each prompt; 0: at once
    kv_bytes_per_token: int = _within(1, _MOST, 16_384)  # that moves between engines
    kv_bytes_per_second: float = _within(0, 1e15, 0.0)  # of each transfer; 0: at once
    kv_transfer_ms: int = _within(0, 3_600_000, 0)  # milliseconds before its first byte
    adapter_load_ms: int = _within(0, 3_600_000, 0)  # milliseconds that it takes to load an adapter
    fail_adapter_loads: str = ""  # share of the loads that fail, or names with commas between
    no_resume: str = ""  # why it goes on with no answer of others; empty: it does
    wakes_wrong: str = ""  # after a sleep: "base", "adapter" or "slow"; for tests


def parse_simulated(engine_args: Mapping[str, str]) -> SimulatedSettings:
    """Checks settings as they stand on the command line. Raises `CannotLoad`."""
    known = {one.name: one for one in fields(SimulatedSettings)}
    values: dict[str, Any] = {}
    for key, text in engine_args.items():
        if key not in known:
            told = ", ".join(known)
            raise CannotLoad(f"the simulated engine has no setting {key!r}: it knows {told}")
        values[key] = text if known[key].type == "str" else _number(known[key], text)
    share_that_fails(values.get("fail_adapter_loads", ""))
    if (wrong := values.get("wakes_wrong", "")) not in WRONG_WAKES:
        raise CannotLoad(f"wakes_wrong is {wrong!r}: it must be base, adapter or slow")
    return SimulatedSettings(**values)


def _number(setting: Field[Any], text: str) -> float:
    (least, most), whole = setting.metadata["within"], setting.type == "int"
    kind = "a whole number" if whole else "a number"
    try:
        number = int(text) if whole else float(text)
    except ValueError:
        number = float("nan")
    if not least <= number <= most:
        raise CannotLoad(
            f"{setting.name} is {text!r}: it must be {kind} from {least:g} to {most:g}"
        )
    return number


class SimulatedEngine:
    """The native engine as an `Engine`; `native` is what the server answers with."""

    def __init__(
        self,
        model: str,
        served_name: str,
        adapters: tuple[AdapterSource, ...],
        engine_args: Mapping[str, str],
        inbox: Inbox,
        room: AdapterRoom | None = None,
        kv_host: str = "",
    ) -> None:
        """`kv_host`: where it takes KV from other engines; empty: it serves no MicroServing."""
        self._settings = parse_simulated(engine_args)
        self._served_name = served_name
        self._named = adapters
        self._room = room or AdapterRoom()
        self._keys = itertools.count(1)
        self._asked: dict[int, asyncio.Queue[Event]] = {}
        self._death = asyncio.Event()
        self._reason = ""
        self._asleep = False
        self._changed: Callable[[], None] = lambda: None
        self._kv_host = kv_host
        self._model = model
        self._model_version = _digest([model])
        self.native = _server.SimulatedEngine(self._native_values(), inbox.native)
        settings = self._settings
        weights = SimulatedWeights(
            self.native,
            inbox,
            self._room.contents,
            settings.adapter_load_ms,
            settings.fail_adapter_loads,
        )
        self._table = AdapterTable(weights, self._room.load_timeout)
        self._wanted = WantedAdapters(self.native, self._table, inbox)
        self._moving = self._make_moving(kv_host) if kv_host else None
        inbox.listen(Kind.EVENT, self._hear)
        inbox.listen(Kind.DIED, self._die)

    async def start(self) -> EngineFacts:
        """There is nothing to load but adapters."""
        self._table.open(self._room.slots_for(self._named), self._room.max_rank)
        for adapter in self._named:
            await load_named(self._table, adapter)
        if self._moving is not None:
            await self._moving.start()
        return EngineFacts(
            backend="simulated",
            backend_version=version("penstock"),
            model_version=self._model_version,
            max_model_len=MAX_MODEL_LEN,
            max_running=self._settings.max_running,
            config_hash=self._config_hash(),
            endpoints=_ENDPOINTS,
            model=self._model,
        )

    async def answer(self, call: Call, sink: Sink) -> None:
        """Answers a call of this process, which takes no slot, and no fault strikes it; or one of
        another that tells of KV, which is like any other."""
        if self._asleep:
            return sink.fail(_ASLEEP)
        if self._moving is None or not call.kv or not call.kv.seq_id:
            return await self._answer(call, sink)
        leased = replace(call, kv=await self._moving.hint_for(call.kv))
        await self._answer(leased, sink)

    async def _answer(self, call: Call, sink: Sink) -> None:
        key, spent = next(self._keys), _Spent(_delivered_to(call))
        events = self._asked[key] = asyncio.Queue()
        sink.costs(spent.usage)
        try:
            request = wire.request_of(call).SerializeToString()
            self.native.ask(key, request, call.kv is None)
            if self._moving is not None and call.kv:
                await self._moving.release(call.kv.seq_id)
            while not await _pass_on(spent.noted(await events.get()), sink):
                pass
        finally:
            del self._asked[key]
            self.native.cancel_asked(key)

    def load(self) -> LoadFigures:
        """Exact at any time."""
        running, waiting, tokens, _ = self.native.figures()
        return LoadFigures(running=running, waiting=waiting, tokens=tokens)

    def watch(self, changed: Callable[[], None]) -> None:
        """The native engine tells the native server itself of all but KV that moves."""
        self._changed = changed

    def cpu_seconds(self) -> float:
        """It has no process of its own."""
        return 0.0

    async def metrics(self) -> str:
        """It has none beside the replica's."""
        return ""

    def kind(self) -> EngineKind:
        """It generates."""
        return EngineKind.TEXT

    async def pool(self, text: str, *, priority: int = 0) -> int:
        """It cannot."""
        raise EngineError("the simulated engine generates, it does not pool")

    async def reach(self) -> None:
        """It answers in this process."""

    async def probe(self) -> None:
        """One token; never comes from an engine that hangs."""
        if self._asleep:
            return
        if self._death.is_set():
            raise EngineError(self._reason)
        body = json.dumps({"prompt": "Hello", "max_tokens": 1}).encode()
        call = Call("probe", "/v1/completions", body, self._served_name)
        async for event in events_of(self.answer, call):
            if isinstance(event, Failed):
                raise EngineError(event.message)

    async def died(self) -> Death:
        """Returns when `die_after_tokens` has struck."""
        await self._death.wait()
        return Death(self._reason)

    @property
    def adapters(self) -> AdapterTable:
        """Its adapters."""
        return self._table

    @property
    def microserving(self) -> MicroServing | None:
        """Where it has a place to take KV."""
        return self._moving

    def no_resume(self) -> str | None:
        """As its settings say."""
        return self._settings.no_resume

    def self_test_failed(self) -> bool:
        """It needs none."""
        return False

    def sleepless(self) -> str:
        """It can."""
        return ""

    async def sleep(self, level: int) -> None:
        """Forgets its adapters' words and all prefixes, as one whose memory is gone."""
        self._asleep = True
        if self._moving is not None:
            self._moving.forget()
        for adapter in self._table.held():
            self.native.remove_adapter(adapter.name)

    async def wake(self) -> None:
        """Answers again, wrongly where it is to."""
        if self._settings.wakes_wrong == "slow":
            await asyncio.Event().wait()
        self.native.wake_wrongly(self._settings.wakes_wrong)
        self._asleep = False

    async def stop(self) -> None:
        """Ends the engine's thread."""
        if self._moving is not None:
            self._moving.stop()
        self._wanted.close()
        self._table.close()
        self.native.stop()

    def _config_hash(self) -> str:
        """Of what its words and bytes follow from, and nothing else."""
        settings = self._settings
        said = (settings.answer_tokens, settings.per_request, settings.wakes_wrong)
        return _digest([self._model_version, version("penstock"), bool(self._kv_host), said])

    def _native_values(self) -> dict[str, int | float | str | bool]:
        return {
            **asdict(self._settings),
            "per_request": bool(self._settings.per_request),
            "microserving": bool(self._kv_host),
            "max_model_len": MAX_MODEL_LEN,
            "backend_version": version("penstock"),
            "model": public_name(self._model),
            "model_version": self._model_version,
        }

    def _make_moving(self, host: str) -> SimulatedMicroServing:
        settings = self._settings
        pace = Pace(
            settings.kv_bytes_per_token * BLOCK,
            settings.kv_bytes_per_second,
            settings.kv_transfer_ms / 1000,
        )
        fingerprint = _digest([self._model_version, version("penstock"), pace.bytes_per_block])
        kv = KvSettings(settings.kv_blocks, pace, fingerprint, host)
        return SimulatedMicroServing(self.native, kv, self._prefill, lambda: self._changed())

    async def _prefill(self, sending: Sending, end: int) -> int:
        """Computes the prompt as a call like any other, that is cut off after a token."""
        prompt = sending.prompt
        call = Call(
            sending.request_id,
            "/v1/completions",
            json.dumps({"prompt": prompt.token_ids[:end], "max_tokens": 1}).encode(),
            self._served_name,
            adapter=prompt.adapter,
            adapter_digest=prompt.adapter_digest,
            tenant_salt=prompt.tenant_salt,
            priority=sending.priority,
            traceparent=sending.traceparent,
            tenant=sending.tenant,
            kv=KvHint(),
        )
        cached = 0
        async with contextlib.aclosing(events_of(self.answer, call)) as events:
            async for event in events:
                if isinstance(event, Failed):
                    raise MicroServingError("transfer", f"the sender fails: {event.message}")
                if isinstance(event, Head):
                    cached = event.cached_tokens
        return cached

    def _hear(self, key: int, payload: bytes) -> None:
        if events := self._asked.get(key):
            for event in wire.events_of(inference_pb2.CallEvent.FromString(payload)):
                events.put_nowait(event)

    def _die(self, _: int, reason: bytes) -> None:
        self._reason = reason.decode()
        self._death.set()


_ASLEEP = Failed(503, "server_error", "asleep", "The simulated engine sleeps.")


@dataclass(slots=True)
class _Spent:
    """What a call has cost so far."""

    _usage: Usage = field(default_factory=Usage)

    def noted(self, event: Event) -> Event:
        """Counts what the event tells, and returns it."""
        if isinstance(event, Head):
            made = self._usage.completion_tokens
            self._usage = Usage(event.prompt_tokens, made, event.cached_tokens)
        elif isinstance(event, Chunk):
            made = self._usage.completion_tokens + event.tokens
            self._usage = replace(self._usage, completion_tokens=made)
        return event

    def usage(self) -> Usage:
        """See `Sink.costs`."""
        return self._usage


def _delivered_to(call: Call) -> Usage:
    groups = call.resume.groups if call.resume else ()
    return Usage(completion_tokens=sum(len(group.token_ids) for group in groups))


async def _pass_on(event: Event, sink: Sink) -> bool:
    """Writes the event into the sink; whether it was the last."""
    match event:
        case Head():
            sink.head(event)
        case Chunk():
            if sink.write(event.body, event.events, event.groups, event.tokens):
                await sink.room()
        case Finished():
            sink.finish(event)
        case Failed():
            sink.fail(event)
    return isinstance(event, Finished | Failed)


def _digest(facts: object) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]
