"""What an engine's calls have to do with KV that is moved; nothing, where it moves none."""

from __future__ import annotations

from typing import Any

from penstock.replica.engine import Sink
from penstock.replica.values import Call, EngineFacts
from penstock.replica.vllm.microserving.service import Asking, VllmMicroServing
from penstock.replica.vllm.serving.answering import answer
from penstock.replica.vllm.serving.asgi import App
from penstock.replica.vllm.serving.tap import CallTap


class KvCalls:
    """Of one engine. `service`: MicroServing's calls, once it is up."""

    def __init__(self, host: str) -> None:
        """`host`: where it takes KV of others; empty: it moves none."""
        self.host = host
        self.service: VllmMicroServing | None = None

    async def begin(self, launched: Any, found: EngineFacts, asking: Asking) -> None:
        """The engine is up, as `launched` says. Raises `MicroServingError`."""
        if not self.host:
            return
        config = launched.llm.vllm_config
        gauges = launched.gauges
        service = VllmMicroServing(launched.llm, asking, lambda: gauges.changed())
        await service.begin(
            {
                "model": found.model_version,
                "config": found.settings_hash,
                "kv": config.kv_transfer_config.kv_connector_extra_config["transport"],
                "ranks": config.parallel_config.tensor_parallel_size,
            }
        )
        self.service = service

    async def answer(self, app: App, call: Call, sink: Sink) -> None:
        """Answers with what is in the engine, and with the KV that was moved for the call."""
        if self.service is None or call.kv is None:
            return await answer(app, call, sink)
        tap = CallTap(call)
        moved = await self.service.moved_for(call.kv)
        tap.moved, tap.beside = moved.tokens, moved.told()
        try:
            await answer(app, call, sink, tap)
        finally:
            if not tap.aboard():
                self.service.give_back(moved)

    async def give_up(self, *, asleep: bool) -> None:
        """Ends all leases, for what they hold is about to go; begins none while `asleep`. Raises
        `EngineError`."""
        if self.service is not None:
            await self.service.release_all(asleep=asleep)

    def close(self) -> None:
        """The engine ends."""
        if self.service is not None:
            self.service.close()
