"""What others see of the replica: its state (`life.py`) and its load, published together."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Protocol

from penstock.replica.engine import Engine
from penstock.replica.reporting.life import Happening, State, after
from penstock.replica.values import EngineFacts
from penstock.v1 import inference_pb2

_REPEAT = 1.0  # seconds until the load is published although no step told that it changed
_LEAST = 0.02  # seconds between two publications

_ON_THE_WIRE = {
    State.STARTING: inference_pb2.REPLICA_STATE_STARTING,
    State.READY: inference_pb2.REPLICA_STATE_READY,
    State.ASLEEP: inference_pb2.REPLICA_STATE_ASLEEP,
    State.DRAINING: inference_pb2.REPLICA_STATE_DRAINING,
    State.STOPPED: inference_pb2.REPLICA_STATE_DRAINING,  # the last that anybody hears
}


ResumeKnown = Callable[[str, bool], None]
"""Hears what `Engine.no_resume` and `Engine.self_test_failed` say, when that changes."""


class Board(Protocol):
    """Where loads are published."""

    def set_load(self, load: bytes) -> None:
        """See `_server.InferenceServer`."""


class Presence:
    """The replica's state, and the engine's figures beside it."""

    def __init__(
        self, board: Board, engine: Engine, resume_known: ResumeKnown = lambda _why, _failed: None
    ) -> None:
        self._board = board
        self._engine = engine
        self._resume_known = resume_known
        self._no_resume: str | None = None  # as it was told last
        self._facts: EngineFacts | None = None
        self._changed = asyncio.Event()
        self.state = State.STARTING
        engine.watch(self._changed.set)
        engine.adapters.watch(self.publish)

    @property
    def wire_state(self) -> inference_pb2.ReplicaState:
        """The state as the contracts name it."""
        return _ON_THE_WIRE[self.state]

    def loaded(self, facts: EngineFacts) -> State:
        """The engine is up; what the replica is now."""
        self._facts = facts
        return self.hear(Happening.LOADED)

    def hear(self, happening: Happening) -> State:
        """The state that follows; it holds for calls that arrive from now on."""
        self.state = after(self.state, happening)
        self.publish()
        return self.state

    def publish(self) -> None:
        """Publishes the state and the engine's figures of this moment."""
        load = inference_pb2.Load(
            state=self.wire_state,
            adapters=[adapter.name for adapter in self._engine.adapters.held()],
            adapter_slots=self._engine.adapters.slots,
            **asdict(self._engine.load()),
        )
        if self._facts:
            load.max_running = self._facts.max_running
            load.config_hash = self._facts.config_hash
            load.resumes = self._tell_resume() == ""
        if self._engine.microserving is not None:
            moving = self._engine.microserving.figures()
            load.transfers, load.leased_blocks = moving.transfers, moving.leased_blocks
        self._board.set_load(load.SerializeToString())

    def _tell_resume(self) -> str | None:
        """Why the engine does not resume; tells whoever asked to hear of it, once it is known."""
        why = self._engine.no_resume()
        if why is not None and why != self._no_resume:
            self._no_resume = why
            self._resume_known(why, self._engine.self_test_failed())
        return why

    async def keep_publishing(self) -> None:
        """Publishes for as long as it runs: what the engine's steps changed, as soon as that may
        be, and the same again each second."""
        while True:
            self._changed.clear()
            published = time.monotonic()
            self.publish()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_REPEAT):
                    await self._changed.wait()
            # Not a turn later than need be: the events of a step take its figures along.
            if (rest := published + _LEAST - time.monotonic()) > 0:
                await asyncio.sleep(rest)
