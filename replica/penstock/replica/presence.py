"""What others see of the replica: its state and its load, published together."""

from __future__ import annotations

import asyncio
from typing import Protocol

from penstock.replica.engine import Engine, EngineFacts
from penstock.v1 import inference_pb2

_PERIOD = 0.25  # seconds between looks at the engine; the server drops what has not changed

STARTING = inference_pb2.REPLICA_STATE_STARTING
READY = inference_pb2.REPLICA_STATE_READY
DRAINING = inference_pb2.REPLICA_STATE_DRAINING


class Board(Protocol):
    """Where loads are published."""

    def set_load(self, load: bytes) -> None:
        """See `_server.InferenceServer`."""
        ...


class Presence:
    """The replica's state, and the engine's figures beside it. Starts in STARTING."""

    def __init__(self, board: Board, engine: Engine) -> None:
        self._board = board
        self._engine = engine
        self._facts: EngineFacts | None = None
        self.state: inference_pb2.ReplicaState = STARTING

    def enter(self, state: inference_pb2.ReplicaState, facts: EngineFacts | None = None) -> None:
        """Changes the state; it holds for calls that arrive from now on."""
        self.state = state
        self._facts = facts or self._facts
        self.publish()

    def publish(self) -> None:
        """Publishes the state and the engine's figures of this moment."""
        figures = self._engine.load()
        load = inference_pb2.Load(
            state=self.state,
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


__all__ = ["DRAINING", "READY", "STARTING", "Board", "Presence"]
