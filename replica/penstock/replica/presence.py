"""What others see of the replica: its state (`life.py`) and its load, published together."""

from __future__ import annotations

import asyncio
from typing import Protocol

from penstock.replica.engine import Engine, EngineFacts
from penstock.replica.life import Happening, State, after
from penstock.v1 import inference_pb2

_PERIOD = 0.25  # seconds between looks at the engine; the server drops what has not changed

_ON_THE_WIRE = {
    State.STARTING: inference_pb2.REPLICA_STATE_STARTING,
    State.READY: inference_pb2.REPLICA_STATE_READY,
    State.DRAINING: inference_pb2.REPLICA_STATE_DRAINING,
    State.STOPPED: inference_pb2.REPLICA_STATE_DRAINING,  # the last that anybody hears
}


class Board(Protocol):
    """Where loads are published."""

    def set_load(self, load: bytes) -> None:
        """See `_server.InferenceServer`."""
        ...


class Presence:
    """The replica's state, and the engine's figures beside it."""

    def __init__(self, board: Board, engine: Engine) -> None:
        self._board = board
        self._engine = engine
        self._facts: EngineFacts | None = None
        self.state = State.STARTING

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
        figures = self._engine.load()
        load = inference_pb2.Load(
            state=self.wire_state,
            running=figures.running,
            waiting=figures.waiting,
            kv_usage=figures.kv_usage,
            prefix_queries=figures.prefix_queries,
            prefix_hits=figures.prefix_hits,
            tokens=figures.tokens,
            adapters=[adapter.name for adapter in self._engine.adapters()],
        )
        if self._facts:
            load.max_running = self._facts.max_running
            load.config_hash = self._facts.config_hash
        self._board.set_load(load.SerializeToString())

    async def keep_publishing(self) -> None:
        """Publishes for as long as it runs."""
        while True:
            self.publish()
            await asyncio.sleep(_PERIOD)


__all__ = ["Board", "Presence"]
