"""An engine whose model pools, and asking it."""

from __future__ import annotations

import json
from typing import Any

from penstock.replica.values import EngineFacts
from penstock.replica.vllm.engine import VllmEngine
from tests.fakes.engine_nursery import NurseryEngine
from tests.replica.vllm.talking import Answer, ask, until


class Pooler:
    """An engine with what it said of itself."""

    def __init__(self, model: str, **settings: str) -> None:
        self.model = model
        self.engine = VllmEngine(model, model, (), settings, forked=NurseryEngine())
        self.facts: EngineFacts

    async def __aenter__(self) -> Pooler:
        self.facts = await self.engine.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.engine.stop()

    async def ask(self, path: str, **fields: Any) -> Answer:
        """What it answers to a request of these fields."""
        return await ask(self.engine, json.dumps(fields).encode(), path, self.model)

    def texts(self) -> int:
        """How many the engine has. Its load tells of those alone that take more than one step."""
        return len(self.engine.launched.llm.output_processor.request_states)

    async def has_texts(self) -> None:
        """Waits until the first of a list is there."""
        await until(lambda: self.texts() > 0, "the texts are in the engine")
