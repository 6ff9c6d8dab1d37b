"""A chat completion request as a request of Bedrock's Converse. Pure.

What Converse cannot do and what would change the answer is refused by name (`fields.py`). What is
sent meets the bounds and patterns of Converse's own model.
"""

from __future__ import annotations

from typing import Any, Final

from penstock.replica.providers import errors, fields
from penstock.replica.providers.converse_blocks import (
    Block,
    blocks_of,
    marked,
    reasoning_blocks,
    tool_id,
    tool_use,
)
from penstock.replica.providers.converse_tools import output_config, tool_config
from penstock.replica.providers.requests import completion_limit, without_limits, wrong_type
from penstock.replica.providers.settings import Allowed
from penstock.replica.providers.values import Ask

_TRANSLATED: Final = frozenset(
    {
        *("messages", "stream", "temperature", "top_p", "stop", "tools", "tool_choice"),
        *("response_format", "reasoning_effort", "service_tier"),
    }
)
_MORE_FIELDS: Final = ("top_k", "thinking")
"""Fields that models know and Converse does not name: passed on as they are."""

_KNOWN: Final = _TRANSLATED.union(_MORE_FIELDS, ["additionalModelRequestFields"])
_MOST_STOPS: Final = 2500
_BEGINNING: Final[Block] = {"text": "."}
"""What the user says where a conversation begins otherwise: Converse wants one to speak first, and
no text to be empty."""

_SYSTEM: Final = ("system", "developer")


def converse_request(
    ask: Ask, model: str, guardrail: tuple[str, str], allowed: Allowed
) -> dict[str, Any]:
    """The arguments of Converse and ConverseStream alike. `guardrail`: its id and version; empty:
    none. Raises `ProviderFailed`."""
    body = fields.passed(without_limits(ask.call, ask.body), _KNOWN, allowed.features)
    allowed.check_tier(body.get("service_tier"))
    messages, system = _conversation(body.get("messages"))
    request: dict[str, Any] = {"modelId": model, "messages": messages}
    parts: dict[str, Any] = {
        "system": system,
        "inferenceConfig": _inference(ask, body),
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
            system += _texts(_said(message, where), where)
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
    if not turns or turns[0]["role"] != "user":
        turns.insert(0, {"role": "user", "content": [dict(_BEGINNING)]})
    return turns, system


def _said(message: dict[str, Any], where: str) -> list[Block]:
    """What a message says, and its own mark for the cache behind it."""
    said = blocks_of(message.get("content"), f"{where}.content")
    return marked(said, message, where)


def _blocks(role: str, message: dict[str, Any], where: str) -> list[Block]:
    if role == "tool":
        use_id = message.get("tool_call_id")
        if not isinstance(use_id, str):
            raise wrong_type(f"{where}.tool_call_id", "a string", use_id)
        said = _said(message, where)
        # A result has no marks: they stand behind it.
        marks = [block for block in said if "cachePoint" in block][-1:]
        content = [block for block in said if "cachePoint" not in block]
        return [{"toolResult": {"toolUseId": tool_id(use_id), "content": content}}, *marks]
    if role == "user":
        if message.get("content") is None:
            raise wrong_type(f"{where}.content", "a string or a list of parts", None)
        return _said(message, where)
    if message.get("function_call"):
        raise errors.unsupported(f"{where}.function_call", "give tool_calls in its place")
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list):
        raise wrong_type(f"{where}.tool_calls", "a list", calls)
    uses = [tool_use(call, f"{where}.tool_calls[{at}]") for at, call in enumerate(calls)]
    said = blocks_of(message.get("content"), f"{where}.content")
    return marked(reasoning_blocks(message, where) + said + uses, message, where)


def _texts(blocks: list[Block], where: str) -> list[Block]:
    if any("image" in block for block in blocks):
        raise errors.refused(f"{where!r}: the system's messages are text.", where)
    return blocks


def _inference(ask: Ask, body: dict[str, Any]) -> dict[str, Any]:
    _, limit = completion_limit(ask.call, ask.body)
    stop = body.get("stop")
    stops = [stop] if isinstance(stop, str) else stop or []
    if not isinstance(stops, list) or not all(isinstance(one, str) for one in stops):
        raise wrong_type("stop", "a string or a list of strings", stop)
    if len(stops) > _MOST_STOPS:
        raise errors.unsupported("stop", f"at most {_MOST_STOPS} texts end an answer here")
    values = {
        "maxTokens": limit or None,
        "temperature": _share(body, "temperature"),
        "topP": _share(body, "top_p"),
        "stopSequences": [one for one in stops if one] or None,
    }
    return {name: value for name, value in values.items() if value is not None}


def _share(body: dict[str, Any], field: str) -> float | None:
    """A number from 0 to 1, beyond which Converse has none."""
    value = body.get(field)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong_type(field, "a number", value)
    if not 0 <= value <= 1:
        raise errors.unsupported(field, f"it is {value}, and here from 0 to 1")
    return value


def _more_fields(body: dict[str, Any]) -> dict[str, Any]:
    given = body.get("additionalModelRequestFields") or {}
    if not isinstance(given, dict):
        raise wrong_type("additionalModelRequestFields", "an object", given)
    return {name: body[name] for name in _MORE_FIELDS if body.get(name) is not None} | given


def _tier(tier: object) -> dict[str, object]:
    return {} if tier in (None, "auto", "default") else {"type": tier}
