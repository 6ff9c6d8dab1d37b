"""One real engine for all tests that only ask: starting one costs some 15 s."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from penstock.replica.engine import AdapterSource
from penstock.replica.vllm.engine import VllmEngine

ADAPTERS = (
    AdapterSource("pirate@1", "penstock-mini/pirate"),
    AdapterSource("json@1", "penstock-mini/json"),
)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def engine() -> AsyncIterator[VllmEngine]:
    """penstock-mini with both adapters. A small step budget, so that long prompts come in parts."""
    engine = VllmEngine(
        "penstock-mini", "penstock-mini", ADAPTERS, {"max_num_batched_tokens": "256"}
    )
    try:
        await engine.start()
        yield engine
    finally:
        await engine.stop()
