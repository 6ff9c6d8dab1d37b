"""Routes of ours before those of vLLM's app: of several for one path the first counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def put_first(router: Any, path: str, answer: Callable[..., Any]) -> None:
    """Has `answer` called for a path, if vLLM serves that."""
    if any(getattr(route, "path", "") == path for route in router.routes):
        router.add_api_route(path, answer, methods=["POST"], response_model=None)
        router.routes.insert(0, router.routes.pop())
