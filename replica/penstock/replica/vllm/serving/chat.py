"""What vLLM's /v1/chat/completions lacks: a choice among allowed tools.

Imports vLLM: only after `environment.prepare`.
"""

from __future__ import annotations

from typing import Any

from pydantic import model_validator
from starlette.requests import Request
from starlette.responses import Response
from vllm.entrypoints.openai.chat_completion import api_router
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest

from penstock.replica.vllm.serving.routes import put_first


def _among_allowed(data: Any) -> Any:
    """The request with the allowed ones of its tools alone, and the choice that is left. Raises
    ValueError where the choice is not as the API has it."""
    choice = data.get("tool_choice") if isinstance(data, dict) else None
    if not isinstance(choice, dict) or choice.get("type") != "allowed_tools":
        return data
    allowed = choice.get("allowed_tools")
    allowed = allowed if isinstance(allowed, dict) else {}
    named, mode = {_name(tool) for tool in allowed.get("tools") or ()}, allowed.get("mode")
    if mode not in ("auto", "required"):
        raise ValueError(f"tool_choice.allowed_tools.mode is {mode!r}; use auto or required")
    tools = [tool for tool in data.get("tools") or () if _name(tool) in named]
    if missing := named - {_name(tool) for tool in tools}:
        raise ValueError(f"tool_choice.allowed_tools names {sorted(missing)}, which tools has not")
    return data | {"tools": tools, "tool_choice": mode}


def _name(tool: Any) -> str:
    function = tool.get("function") if isinstance(tool, dict) else None
    return str(function.get("name")) if isinstance(function, dict) else ""


class ChatRequest(ChatCompletionRequest):  # type: ignore[misc]
    """vLLM's, with a choice among allowed tools."""

    _choose = model_validator(mode="before")(_among_allowed)


async def _create(request: ChatRequest, raw_request: Request) -> Response:
    response: Response = await api_router.create_chat_completion(request, raw_request)
    return response


def let_tools_be_allowed(router: Any) -> None:
    """Puts a route before vLLM's own that takes such requests."""
    put_first(router, "/v1/chat/completions", _create)
