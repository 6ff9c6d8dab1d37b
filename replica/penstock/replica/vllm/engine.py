"""The real engine: vLLM behind the `Engine` Protocol.

`start` checks the files, launches vLLM (`launch.py`), builds its app (`app.py`), loads and pins the
adapters and warms up. `answer` is `answering.py`. One asyncio loop owns all of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from penstock.adapters.lora_config import LARGEST_RANK
from penstock.replica.adapters.table import AdapterTable, load_named
from penstock.replica.adapters.values import AdapterRoom, AdapterUnavailable
from penstock.replica.calls import answers, failures
from penstock.replica.engine import Sink
from penstock.replica.microserving.values import MicroServingError
from penstock.replica.stages import Stages
from penstock.replica.values import (
    BEFORE_ALL,
    AdapterSource,
    Call,
    CannotLoad,
    Death,
    EngineError,
    EngineFacts,
    EngineKind,
    Failed,
    LoadFigures,
)
from penstock.replica.vllm.endpoints import ENDPOINTS
from penstock.replica.vllm.failures import errors
from penstock.replica.vllm.guards import elements
from penstock.replica.vllm.lora.adapters import VllmWeights
from penstock.replica.vllm.lora.named import look_at_named
from penstock.replica.vllm.microserving.kv_calls import KvCalls
from penstock.replica.vllm.microserving.reading import prompts_of
from penstock.replica.vllm.microserving.service import Asking, VllmMicroServing
from penstock.replica.vllm.resume.self_test import SelfTest
from penstock.replica.vllm.serving.asgi import App
from penstock.replica.vllm.serving.aside import Aside
from penstock.replica.vllm.start import causes, checks, collector, environment, facts, imports
from penstock.replica.vllm.start.arguments import check_early, own_settings
from penstock.replica.vllm.start.launch import Launched, Launcher, Order
from penstock.replica.vllm.start.preload import ForkedEngine

log = logging.getLogger(__name__)

_DEATH_POLL_S: Final = 0.05
_USUAL_RANK: Final = 16
# What models do that pool, the commonest first; vLLM's names of it.
_POOLING: Final = ("embed", "classify", "token_embed", "token_classify")


@dataclass(slots=True)
class _Up:
    """What there is once the engine is up."""

    launched: Launched
    app: App
    models: Any
    pooling: str  # what a model does that pools, in vLLM's words; empty: it generates
    endpoints: tuple[str, ...]  # by their first names


class VllmEngine:
    """One model and its adapters in vLLM. `engine_args`: vLLM's flags without dashes in front.

    `allow_model_code`: they may make vLLM run code that comes with a model. `forked`: what is to
    be the engine's process, see `preload.py`; it is ended by `stop`.
    """

    def __init__(
        self,
        model: str,
        served_name: str,
        adapters: tuple[AdapterSource, ...],
        engine_args: Mapping[str, str],
        *,
        allow_model_code: bool = False,
        forked: ForkedEngine | None = None,
        room: AdapterRoom | None = None,
        stages: Stages | None = None,
        sleeps: bool = False,
        microserving: str = "",
    ) -> None:
        """`microserving`: the host at which it takes KV of others; empty: it moves none."""
        self._model = model
        self._served_name = served_name
        self._named = adapters
        self._room = room or AdapterRoom()
        self._weights = VllmWeights(self._room.contents)
        self._table = AdapterTable(self._weights, self._room.load_timeout)
        self._engine_args = engine_args
        self._allow_model_code = allow_model_code
        self._forked = forked
        self._stages = stages or Stages.of_program()
        self._launcher: Launcher | None = None
        self._up: _Up | None = None
        self._stopping = False
        self._sleeps = sleeps
        self._kv = KvCalls(microserving)
        self._slept_at = 0  # level of its last sleep
        self._changed: Callable[[], None] = lambda: None
        self._self_test = SelfTest(self._answer, served_name, self._self_tested)
        self._widest = 0  # rank of the adapters that it begins with

    async def start(self) -> EngineFacts:
        """Loads the model and its adapters and warms up. Raises `CannotLoad`."""
        with collector.kept_off_what_stays():
            return await self._start()

    async def _start(self) -> EngineFacts:
        check_early(self._engine_args, allow_model_code=self._allow_model_code)
        place = await asyncio.to_thread(checks.find_model, self._model)
        rank = self._room.max_rank or LARGEST_RANK
        missing, self._widest = await look_at_named(self._named, self._weights, place, rank)
        slots = self._room.slots_for(self._named)
        named = (self._served_name, self._engine_args)
        order = Order(place, *named, slots, self._rank(slots), self._sleeps, self._kv.host)
        self._launcher = Launcher(order, self._forked, self._stages)
        launched = await self._launcher.start()
        self._up = await self._open(launched)
        self._stages.ended("app")
        launched.gauges.changed = self._changed
        self._open_adapters(launched, self._up)
        for adapter in self._named:
            if adapter in missing:
                self._table.note(adapter, missing[adapter])
                continue
            log.info("loading adapter %s", adapter.name)
            await load_named(self._table, adapter)
        self._stages.ended("adapters")
        log.info("warming up")
        await self._warm_up()
        about = (place, launched, self._engine_args, self._up.endpoints)
        found = await asyncio.to_thread(facts.of_engine, *about)
        imports.app().tell_equals(self._up.app, found.config_hash)
        asking = Asking(self._prompts_of, self._held, self._weights.request)
        await self._kv.begin(launched, found, asking)
        self._stages.ended("warm_up")
        if self._up.pooling:
            self._self_test.rule_out("its model pools: no answer of it comes in parts")
        self._self_test.begin()
        return found

    @property
    def microserving(self) -> VllmMicroServing | None:
        """Moves its KV, once it is up, where the replica was asked to."""
        return self._kv.service

    async def _prompts_of(self, call: Call) -> list[Any]:
        """The prompts that `answer` of the call would submit."""
        if refusal := self._refusal(call) or await elements.refusal(call.body):
            raise MicroServingError("bad_request", refusal.message)
        return await prompts_of(self._running().app, call)

    @contextlib.asynccontextmanager
    async def _held(self, call: Call) -> AsyncIterator[Any]:
        """Has the call's adapter in the engine; gives vLLM's request of it."""
        await self._hold(call)
        with self._weights.used(call.adapter):
            yield self._weights.request(call.adapter)

    async def answer(self, call: Call, sink: Sink) -> None:
        """Writes the answer into the sink; see the Protocol."""
        if refusal := self._refusal(call) or await elements.refusal(call.body):
            sink.fail(refusal)
        elif call.adapter:
            await self._answer_with_adapter(call, sink)
        else:
            await self._answer(call, sink)

    async def _answer(self, call: Call, sink: Sink) -> None:
        await self._kv.answer(self._running().app, call, sink)

    def load(self) -> LoadFigures:
        """The newest figures; zeros before the engine is up."""
        return LoadFigures() if self._up is None else self._up.launched.gauges.figures()

    def watch(self, changed: Callable[[], None]) -> None:
        """Has `changed` called after each step."""
        self._changed = changed

    def cpu_seconds(self) -> float:
        """What the engine's processes have used."""
        return 0.0 if self._up is None else self._up.launched.cpu_seconds()

    async def metrics(self) -> str:
        """vLLM's own, as text."""
        if self._up is None:
            return ""
        from penstock.replica.vllm.serving.metrics import exposition

        return await asyncio.to_thread(exposition)

    @property
    def launched(self) -> Launched:
        """What runs beneath: vLLM's engine client and its settings, for who compares with it."""
        return self._running().launched

    def kind(self) -> EngineKind:
        """As vLLM runs the model."""
        return EngineKind.VECTORS if self._running().pooling else EngineKind.TEXT

    async def pool(self, text: str, *, priority: int = 0) -> int:
        """Runs one text through a model that pools; see the Protocol."""
        from penstock.replica.vllm.serving.client import pooled

        up = self._running()
        self._raise_if_dead()
        if not up.pooling:
            raise EngineError(f"model {self._model} generates, it does not pool")
        return await pooled(up.launched.llm, text, up.pooling, priority=priority)

    async def reach(self) -> None:
        """It answers on this machine."""

    async def probe(self) -> None:
        """A round trip through the engine's own loop; raises `EngineError` if it is dead."""
        llm = self._running().launched.llm
        self._raise_if_dead()
        try:
            await llm.is_sleeping()
        except Exception:
            self._raise_if_dead()
            raise

    async def died(self) -> Death:
        """Why it died, some 50 ms after it did; never returns for one that was stopped."""
        launcher = self._launched()
        while self._stopping or not launcher.dead():  # noqa: ASYNC110 - vLLM has no event for it
            await asyncio.sleep(_DEATH_POLL_S)
        return launcher.death()

    @property
    def adapters(self) -> AdapterTable:
        """Its adapters."""
        return self._table

    def sleepless(self) -> str:
        """vLLM takes the order on a CPU, and only logs that it does nothing."""
        return "vLLM's sleep is not there on a CPU" if self._running().launched.cpu else ""

    async def sleep(self, level: int) -> None:
        """Has vLLM give back its device's memory: weights into that of the machine, at level 2
        away; what is cached is gone at either."""
        self._slept_at = level
        await self._self_test.stop()
        await self._kv.give_up(asleep=True)
        await self._running().launched.llm.sleep(level)

    async def wake(self) -> None:
        """Has vLLM take it back; what level 2 threw away is read from the model's files again."""
        llm = self._running().launched.llm
        try:
            if self._slept_at > 1:
                await llm.wake_up(["weights"])
                await llm.collective_rpc("reload_weights")
                await llm.wake_up(["kv_cache"])
            else:
                await llm.wake_up()
            await llm.reset_prefix_cache()
            await self._kv.give_up(asleep=False)
        except Exception as error:
            self._raise_if_dead()
            raise EngineError(f"vLLM does not wake: {causes.of_exception(error)}") from error
        self._self_test.begin()

    def no_resume(self) -> str | None:
        """As its self-test has shown; see the Protocol."""
        return self._self_test.outcome

    def self_test_failed(self) -> bool:
        """Whether that is why."""
        return self._self_test.failed

    def _self_tested(self) -> None:
        self._running().launched.llm.resumes = self._self_test.outcome == ""
        self._changed()

    async def stop(self) -> None:
        """Ends the engine and its processes. Calls that still run fail as by its death."""
        self._stopping = True
        await self._self_test.stop()
        self._table.close()
        self._kv.close()
        if self._launcher is not None:
            await self._launcher.stop()
        elif self._forked is not None:
            self._forked.stop()

    async def _open(self, launched: Launched) -> _Up:
        make_app = imports.app().make_app
        await launched.llm.reset_mm_cache()
        aside = Aside(own_settings(self._engine_args).large_body_bytes)
        try:
            with environment.root_logger_kept():
                made = await make_app(launched.llm, launched.args, aside)
        except Exception as error:  # with an engine that is up, only the settings can be to blame
            if self._launched().dead():
                raise
            raise CannotLoad(f"engine settings: {causes.of_exception(error)}") from error
        tasks = await launched.llm.get_supported_tasks()
        pooling = next((task for task in _POOLING if task in tasks), "")
        if "generate" in tasks:
            pooling = ""
        return _Up(launched, made.app, made.models, pooling, made.endpoints)

    def _refusal(self, call: Call) -> Failed | None:
        """Why the call never gets to vLLM."""
        if call.path not in ENDPOINTS:
            return errors.client_error(404, "not_found", f"There is no endpoint {call.path} here.")
        if call.path not in self._running().endpoints:
            return failures.unsupported_endpoint(call, self._running().endpoints)
        if call.resume is not None and self.no_resume() != "":
            return errors.cannot_resume()
        unasked = call.adapter and not call.adapter_digest
        if unasked and self._table.find(call.adapter) is None:
            return failures.unknown_adapter(call)
        if self._launched().dead():
            return errors.engine_dead(self._launched().death(), aboard=False)
        return None

    async def _answer_with_adapter(self, call: Call, sink: Sink) -> None:
        """Answers once the adapter is there, and keeps it there."""
        began = time.monotonic()
        try:
            async with asyncio.timeout(call.deadline_ms / 1000 or None):
                await self._hold(call)
        except AdapterUnavailable as error:
            return sink.fail(error.failed)
        except TimeoutError:
            return sink.fail(failures.too_late(call.deadline_ms))
        with self._weights.used(call.adapter):
            if call.deadline_ms:
                waited = int((time.monotonic() - began) * 1000)
                call = replace(call, deadline_ms=max(1, call.deadline_ms - waited))
            await self._answer(call, sink)

    async def _hold(self, call: Call) -> None:
        """Returns when the call's adapter is there. Raises `AdapterUnavailable`."""
        adapter = AdapterSource(call.adapter, digest=call.adapter_digest)
        until = time.monotonic() + call.adapter_wait_ms / 1000
        await self._table.load(adapter, wait=call.adapter_wait_ms / 1000)
        # Others may have taken its place before this task had its turn.
        while not self._table.is_open(call.adapter):
            await self._table.load(adapter, wait=max(0.0, until - time.monotonic()))

    def _rank(self, slots: int) -> int:
        """What the engine has to have room for; others than the named ones may be wider."""
        others = slots > len(self._named)
        return self._room.max_rank or max(self._widest, _USUAL_RANK if others else 0)

    def _open_adapters(self, launched: Launched, up: _Up) -> None:
        config = launched.llm.vllm_config.lora_config
        if config is None:
            return self._table.open(0)
        limits = replace(self._weights.limits, max_rank=config.max_lora_rank)
        self._weights.open(launched.llm, up.models, limits)
        # On CPU one slot stays empty, see `arguments._lora_defaults`.
        slots = config.max_loras - 1 if launched.cpu else config.max_loras
        self._table.open(slots, config.max_lora_rank)

    async def _warm_up(self) -> None:
        """One plain request and one with logprobs, whose first one is slow; of a model that pools,
        one text."""
        if self.kind() is EngineKind.VECTORS:
            if not await self.pool("Hello"):
                raise CannotLoad(f"model {self._model}: nothing comes out of its first request")
            return
        for logprobs in (None, 1):
            body = {"prompt": "Hello", "max_tokens": 2, "temperature": 0, "logprobs": logprobs}
            content, name = json.dumps(body).encode(), self._served_name
            call = Call("warm-up", "/v1/completions", content, name, priority=BEFORE_ALL)
            async for event in answers.events_of(self.answer, call):
                if isinstance(event, Failed):
                    raise CannotLoad(
                        f"model {self._model}: its first request failed: {event.message}"
                    )

    def _raise_if_dead(self) -> None:
        if self._launched().dead():
            raise EngineError(f"the engine died: {self._launched().death()}")

    def _running(self) -> _Up:
        if self._up is None:
            raise EngineError("the engine is not started")
        return self._up

    def _launched(self) -> Launcher:
        if self._launcher is None:
            raise EngineError("the engine is not started")
        return self._launcher
