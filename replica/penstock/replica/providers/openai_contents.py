"""What a request to an OpenAI-compatible provider consists of: messages, items and tools. Pure.

Parts and items are listed by their type, with the fields that are passed on; what the provider
keeps or runs itself has to be allowed. Other fields of a message are what another server told of
its answer: they are left out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from penstock.replica.providers import errors
from penstock.replica.providers.requests import CHAT, RESPONSES, wrong_type

_PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "text": ("text", "cache_control"),
    "refusal": ("refusal",),
    "image_url": ("image_url", "cache_control"),
    "input_audio": ("input_audio",),
    "file": ("file",),
    "input_text": ("text",),
    "output_text": ("text",),
    "input_image": ("image_url", "detail", "file_id"),
    "input_file": ("file_data", "filename", "file_url", "file_id"),
    "reasoning_text": ("text",),
    "summary_text": ("text",),
}
_MESSAGE: Final = (
    *("role", "content", "name", "tool_calls", "tool_call_id", "function_call", "refusal"),
    *("audio", "reasoning_content", "reasoning", "reasoning_details", "cache_control"),
)
_ITEMS: Final[Mapping[str, tuple[str, ...]]] = {
    "message": ("role", "content", "status", "phase"),
    "function_call": ("call_id", "name", "arguments", "status"),
    "function_call_output": ("call_id", "output", "status"),
    "custom_tool_call": ("call_id", "name", "input"),
    "custom_tool_call_output": ("call_id", "output"),
    "reasoning": ("summary", "content", "encrypted_content", "status"),
    "item_reference": ("id",),
}
"""Items of a conversation. Their own ids stay here: nothing is kept that they would be of."""

_TOOLS: Final = ("function", "custom")
_SEARCHES: Final = ("web_search", "web_search_preview")
_STORED: Final = ("file_id", "file_ids", "audio")


def checked(path: str, body: dict[str, Any], features: Collection[str]) -> dict[str, Any]:
    """The body with what its messages, items and tools are to hold. Raises `ProviderFailed`."""
    contents = dict(body)
    if path == CHAT and isinstance(body.get("messages"), list):
        contents["messages"] = [
            _message(one, f"messages[{index}]", features)
            for index, one in enumerate(body["messages"])
        ]
    if path == RESPONSES and body.get("prompt"):
        _check_stored("prompt", features)
    if path == RESPONSES and isinstance(body.get("input"), list):
        contents["input"] = [
            _item(one, f"input[{index}]", features) for index, one in enumerate(body["input"])
        ]
    _check_tools(body.get("tools"), features)
    return contents


def _message(message: object, where: str, features: Collection[str]) -> dict[str, Any]:
    if not isinstance(message, dict):
        raise wrong_type(where, "an object", message)
    kept = _kept(message, _MESSAGE, where, features)
    if isinstance(kept.get("content"), list):
        kept["content"] = [
            _part(part, f"{where}.content[{index}]", features)
            for index, part in enumerate(kept["content"])
        ]
    return kept


def _item(item: object, where: str, features: Collection[str]) -> dict[str, Any]:
    if not isinstance(item, dict):
        raise wrong_type(where, "an object", item)
    kind = item.get("type", "message")
    if kind not in _ITEMS:
        if "hosted_tools" in features:
            return item
        raise errors.unsupported(f"{where}.type", f"items of type {kind!r} are not served")
    if kind == "item_reference":
        _check_stored(f"{where}.id", features)
    kept = {"type": kind, **_kept(item, _ITEMS[kind], where, features)}
    for field in ("content", "output", "summary"):
        if isinstance(kept.get(field), list):
            kept[field] = [
                _part(part, f"{where}.{field}[{index}]", features)
                for index, part in enumerate(kept[field])
            ]
    return kept


def _part(part: object, where: str, features: Collection[str]) -> dict[str, Any]:
    if not isinstance(part, dict):
        raise wrong_type(where, "a part of a message", part)
    kind = part.get("type")
    if not isinstance(kind, str) or kind not in _PARTS:
        raise errors.unsupported(f"{where}.type", f"parts of type {kind!r} are not served")
    kept = {"type": kind, **_kept(part, _PARTS[kind], where, features)}
    if isinstance(kept.get("file"), dict):
        fields = ("file_data", "filename", "file_id")
        kept["file"] = _kept(kept["file"], fields, f"{where}.file", features)
    return kept


def _kept(
    value: dict[str, Any], fields: Collection[str], where: str, features: Collection[str]
) -> dict[str, Any]:
    for field in _STORED:
        if field in fields and value.get(field):
            _check_stored(f"{where}.{field}", features)
    return {field: value[field] for field in fields if field in value}


def _check_stored(where: str, features: Collection[str]) -> None:
    if "stored_objects" not in features:
        raise errors.unsupported(where, "it needs the feature stored_objects")


def _check_tools(tools: object, features: Collection[str]) -> None:
    for index, tool in enumerate(tools if isinstance(tools, list) else ()):
        kind = tool.get("type") if isinstance(tool, dict) else None
        need = "web_search" if kind in _SEARCHES else "hosted_tools"
        if kind not in _TOOLS and need not in features:
            raise errors.unsupported_tool(f"tools[{index}].type", kind, need)
