"""A chat completion request as a request of Bedrock's Converse. Pure.

What Converse cannot do and what would change the answer is refused by name; what only concerns a
server that keeps things (`user`, `metadata`, `store`...) is left out.
"""

from __future__ import annotations

from typing import Any, Final

from penstock.replica.providers import errors
from penstock.replica.providers.converse_blocks import (
    Block,
    blocks_of,
    reasoning_blocks,
    tool_use,
)
from penstock.replica.providers.converse_tools import output_config, tool_config
from penstock.replica.providers.requests import completion_limit, wrong_type
from penstock.replica.providers.values import Ask

_MUST_BE: Final[dict[str, tuple[object, ...]]] = {
    "n": (1,),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "logit_bias": ({},),
    "echo": (False,),
    "audio": (),
    "functions": (),
    "function_call": (),
    "web_search_options": (),
}
"""Fields that Converse has nothing for, and the values that say nothing."""

_MORE_FIELDS: Final = ("top_k", "thinking")
"""Fields that models know and Converse does not name: passed on as they are."""

_SYSTEM: Final = ("system", "developer")


def converse_request(ask: Ask, model: str, guardrail: tuple[str, str]) -> dict[str, Any]:
    """The arguments of Converse and ConverseStream alike. `guardrail`: its id and version; empty:
    none. Raises `ProviderFailed`."""
    body = ask.body
    _refuse_what_cannot_be(body)
    messages, system = _conversation(body.get("messages"))
    request: dict[str, Any] = {"modelId": model, "messages": messages}
    parts: dict[str, Any] = {
        "system": system,
        "inferenceConfig": _inference(ask),
        "toolConfig": tool_config(body, messages),
        "outputConfig": output_config(body),
        "additionalModelRequestFields": _more_fields(body),
        "serviceTier": _tier(body.get("service_tier")),
    }
    if guardrail[0]:
        parts["guardrailConfig"] = {
            "guardrailIdentifier": guardrail[0],
            "guardrailVersion": guardrail[1],
        }
    return request | {name: part for name, part in parts.items() if part}


def _conversation(messages: object) -> tuple[list[dict[str, Any]], list[Block]]:
    """Messages with turns that alternate, as Converse wants them, and what the system says."""
    if not isinstance(messages, list) or not messages:
        raise wrong_type("messages", "a list that is not empty", messages)
    turns: list[dict[str, Any]] = []
    system: list[Block] = []
    for index, message in enumerate(messages):
        where = f"messages[{index}]"
        if not isinstance(message, dict):
            raise wrong_type(where, "an object", message)
        role = message.get("role")
        if role in _SYSTEM:
            system += _texts(blocks_of(message.get("content"), f"{where}.content"), where)
            continue
        if role not in ("user", "assistant", "tool"):
            raise errors.refused(
                f"'{where}.role' is {role!r}; it must be system, developer, user, assistant or "
                "tool.",
                f"{where}.role",
            )
        blocks = _blocks(role, message, where)
        speaker = "assistant" if role == "assistant" else "user"
        if turns and turns[-1]["role"] == speaker:
            turns[-1]["content"] += blocks
        elif blocks:
            turns.append({"role": speaker, "content": blocks})
    return turns, system


def _blocks(role: str, message: dict[str, Any], where: str) -> list[Block]:
    content = message.get("content")
    if role == "tool":
        use_id = message.get("tool_call_id")
        if not isinstance(use_id, str):
            raise wrong_type(f"{where}.tool_call_id", "a string", use_id)
        result = blocks_of(content, f"{where}.content")
        return [{"toolResult": {"toolUseId": use_id, "content": result}}]
    if role == "user":
        if content is None:
            raise wrong_type(f"{where}.content", "a string or a list of parts", content)
        return blocks_of(content, f"{where}.content")
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list):
        raise wrong_type(f"{where}.tool_calls", "a list", calls)
    uses = [tool_use(call, f"{where}.tool_calls[{at}]") for at, call in enumerate(calls)]
    said = blocks_of(content, f"{where}.content")
    return reasoning_blocks(message, where) + said + uses


def _texts(blocks: list[Block], where: str) -> list[Block]:
    if any("image" in block for block in blocks):
        raise errors.refused(f"{where!r}: the system's messages are text.", where)
    return blocks


def _inference(ask: Ask) -> dict[str, Any]:
    body = ask.body
    _, limit = completion_limit(ask.call, body)
    stop = body.get("stop")
    stops = [stop] if isinstance(stop, str) else stop or []
    if not isinstance(stops, list) or not all(isinstance(one, str) for one in stops):
        raise wrong_type("stop", "a string or a list of strings", stop)
    values = {
        "maxTokens": limit or None,
        "temperature": _number(body, "temperature"),
        "topP": _number(body, "top_p"),
        "stopSequences": stops or None,
    }
    return {name: value for name, value in values.items() if value is not None}


def _number(body: dict[str, Any], field: str) -> float | None:
    value = body.get(field)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong_type(field, "a number", value)
    return value


def _more_fields(body: dict[str, Any]) -> dict[str, Any]:
    given = body.get("additionalModelRequestFields") or {}
    if not isinstance(given, dict):
        raise wrong_type("additionalModelRequestFields", "an object", given)
    return {name: body[name] for name in _MORE_FIELDS if body.get(name) is not None} | given


def _tier(tier: object) -> dict[str, str]:
    if tier in (None, "auto", "default"):
        return {}
    if not isinstance(tier, str):
        raise wrong_type("service_tier", "a string", tier)
    return {"type": tier}


def _refuse_what_cannot_be(body: dict[str, Any]) -> None:
    for field, neutral in _MUST_BE.items():
        value = body.get(field)
        if value is not None and value not in neutral:
            raise errors.refused(
                f"This model has no {field}; leave it out.", field, "unsupported_parameter"
            )


__all__ = ["converse_request"]
