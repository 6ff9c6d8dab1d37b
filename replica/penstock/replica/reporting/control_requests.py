"""The requests about the replica itself: deep health, adapters, metrics, drain, sleep and wake."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine
from typing import Any, Protocol

from penstock.adapters.adapter import BadAdapterRef
from penstock.replica.adapters.keeper import Keeper
from penstock.replica.calls import wire
from penstock.replica.calls.inbox import Inbox, Kind
from penstock.replica.endings import WokeWrong
from penstock.replica.engine import Engine
from penstock.replica.reporting import exposition
from penstock.replica.reporting.health import Health
from penstock.replica.reporting.life import Happening, State
from penstock.replica.reporting.presence import Presence
from penstock.replica.reporting.sleeping import Sleeper
from penstock.replica.values import EngineError, SleepSettings
from penstock.v1 import inference_pb2

log = logging.getLogger(__name__)

_LOOK = 0.02  # seconds between looks at the number of running calls


class Server(Protocol):
    """Where replies go, and where running calls are counted."""

    def reply(self, key: int, reply: bytes) -> None:
        """See `_server.InferenceServer`."""

    def refuse(self, key: int, message: str) -> None:
        """See `_server.InferenceServer`."""

    def running(self) -> int:
        """See `_server.InferenceServer`."""

    def load(self) -> bytes:
        """See `_server.InferenceServer`."""


class ControlRequests:
    """Answers control requests of the inbox, as tasks of the group it is given."""

    def __init__(
        self,
        server: Server,
        engine: Engine,
        health: Health,
        presence: Presence,
        tasks: asyncio.TaskGroup,
        keeper: Keeper,
        sleep: SleepSettings,
        served_name: str,
    ) -> None:
        self._server = server
        self._engine = engine
        self._health = health
        self._presence = presence
        self._tasks = tasks
        self._keeper = keeper
        self._sleeper = Sleeper(engine, presence, keeper, served_name, sleep, self.drained)

    def attach(self, inbox: Inbox) -> None:
        """Answers what the inbox brings from now on."""
        inbox.listen(Kind.HEALTH, lambda key, request: self._spawn(key, self._deep(request)))
        inbox.listen(Kind.ADAPTERS, lambda key, request: self._spawn(key, self._adapters(request)))
        inbox.listen(Kind.DRAIN, lambda key, request: self._spawn(key, self._drain(request)))
        inbox.listen(Kind.SLEEP, lambda key, request: self._spawn(key, self._sleep(request)))
        inbox.listen(Kind.WAKE, lambda key, _: self._spawn(key, self._wake()))
        inbox.listen(Kind.METRICS, lambda key, _: self._spawn(key, self._metrics()))

    def reluctance(self) -> str:
        """Why the replica will not be put to sleep; empty: it may be."""
        return self._sleeper.reluctance()

    async def drained(self, seconds: float) -> int:
        """Waits until no call runs, at most so long; returns how many still do."""
        deadline = time.monotonic() + seconds
        while True:
            left = self._server.running()
            if not left or time.monotonic() >= deadline:
                return left
            await asyncio.sleep(_LOOK)

    def _spawn(self, key: int, work: Coroutine[Any, Any, bytes]) -> None:
        self._tasks.create_task(self._answer(key, work))

    async def _answer(self, key: int, work: Coroutine[Any, Any, bytes]) -> None:
        try:
            self._server.reply(key, await work)
        except WokeWrong as error:
            self._server.refuse(key, str(error))
            raise  # which ends the replica
        except (EngineError, BadAdapterRef) as error:
            self._server.refuse(key, str(error))
        except Exception as error:
            log.exception("a control request broke")
            self._server.refuse(key, f"{type(error).__name__}: {error}")

    async def _deep(self, payload: bytes) -> bytes:
        behind = inference_pb2.HealthRequest.FromString(payload).behind
        verdict = await (self._health.deep_behind() if behind else self._health.deep())
        return inference_pb2.HealthReply(
            ok=verdict.ok,
            state=self._presence.wire_state,
            detail=verdict.detail,
            latency_us=verdict.latency_us,
        ).SerializeToString()

    async def _adapters(self, payload: bytes) -> bytes:
        request = inference_pb2.AdaptersRequest.FromString(payload)
        table, action = self._engine.adapters, request.WhichOneof("action")
        if action in ("load", "unload") and self._presence.state is State.ASLEEP:
            raise EngineError("the replica sleeps: it changes no adapters until it is woken")
        match action:
            case "load":
                await table.load(wire.adapter_of(request.load))
            case "unload":
                if not await table.unload(request.unload):
                    raise EngineError(
                        f"the adapter {request.unload} is in use; send it no more calls, and ask "
                        "again when those that it has are done"
                    )
                self._keeper.forget(request.unload)
            case "keep":
                adapters = [wire.adapter_of(adapter) for adapter in request.keep.adapters]
                self._keeper.keep(adapters, request.keep.dropped)
        return inference_pb2.AdaptersReply(
            loaded=map(wire.adapter_message, table.held()),
            failed=map(wire.failure_message, table.failed()),
        ).SerializeToString()

    async def _metrics(self) -> bytes:
        load = inference_pb2.Load.FromString(self._server.load())
        held = await asyncio.to_thread(exposition.memory)
        engine = await self._engine.metrics()
        moving = self._engine.microserving
        return inference_pb2.MetricsReply(
            text=exposition.text(load, held, engine, moving.figures() if moving else None)
        ).SerializeToString()

    async def _sleep(self, payload: bytes) -> bytes:
        request = inference_pb2.SleepRequest.FromString(payload)
        await self._sleeper.sleep(request.deadline_ms / 1000)
        return inference_pb2.SleepReply().SerializeToString()

    async def _wake(self) -> bytes:
        return inference_pb2.WakeReply(wakes=await self._sleeper.wake()).SerializeToString()

    async def _drain(self, payload: bytes) -> bytes:
        request = inference_pb2.DrainRequest.FromString(payload)
        log.info("draining", extra={"deadline_ms": request.deadline_ms})
        self._presence.hear(Happening.DRAIN)
        left = await self.drained(request.deadline_ms / 1000)
        return inference_pb2.DrainReply(left=left).SerializeToString()
