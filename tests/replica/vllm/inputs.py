"""What the engine is given, seen where a request enters it, by tests of a real one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from penstock.replica.vllm.engine import VllmEngine


@dataclass(frozen=True)
class Entered:
    """One request as it enters the engine."""

    request_id: str
    priority: int
    prompt: Any
    params: Any
    more: dict[str, Any]


@contextmanager
def entering_requests(engine: VllmEngine) -> Iterator[list[Entered]]:
    """Collects what enters while it lasts."""
    assert engine._up is not None
    llm = engine._up.launched.llm
    enter, seen = llm.add_request, []

    async def entering(request_id: str, prompt: Any, params: Any, **more: Any) -> Any:
        seen.append(Entered(request_id, more.pop("priority", 0), prompt, params, more))
        return await enter(request_id, prompt, params, priority=seen[-1].priority, **more)

    llm.add_request = entering
    try:
        yield seen
    finally:
        del llm.add_request


__all__ = ["Entered", "entering_requests"]
