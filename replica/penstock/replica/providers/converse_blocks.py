"""Parts of OpenAI's messages as Converse's content blocks. Pure."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator
from typing import Any, Final

from penstock.replica.providers import errors
from penstock.replica.providers.requests import wrong_type

Block = dict[str, Any]

_DATA_URL: Final = re.compile(r"data:image/([a-z+.-]+);base64,(.*)", re.DOTALL)
_FORMATS: Final = {
    "png": "png",
    "jpeg": "jpeg",
    "jpg": "jpeg",
    "pjpeg": "jpeg",
    "gif": "gif",
    "webp": "webp",
}


def blocks_of(content: object, where: str) -> list[Block]:
    """The blocks of a message's content; a text of nothing but blanks has none, which Bedrock would
    refuse. Raises `ProviderFailed`."""
    if content is None:
        return []
    if isinstance(content, str):
        return [{"text": content}] if content.strip() else []
    if not isinstance(content, list):
        raise wrong_type(where, "a string or a list of parts", content)
    return [
        block for index, part in enumerate(content) for block in _part(part, f"{where}[{index}]")
    ]


def reasoning_blocks(message: dict[str, Any], where: str) -> list[Block]:
    """What the model thought before, as this provider gave it out: `thinking_blocks`."""
    thoughts = message.get("thinking_blocks")
    if thoughts is None:
        return []
    if not isinstance(thoughts, list) or not all(isinstance(one, dict) for one in thoughts):
        raise wrong_type(f"{where}.thinking_blocks", "a list of objects", thoughts)
    return [_thought(one, f"{where}.thinking_blocks") for one in thoughts]


def tool_use(call: object, where: str) -> Block:
    """One call of a tool."""
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(call, dict) or not isinstance(function, dict):
        raise wrong_type(where, "a call of a function", call)
    name, use_id = function.get("name"), call.get("id")
    if not isinstance(name, str) or not isinstance(use_id, str):
        raise wrong_type(where, "a call with an id and a name", call)
    text = function.get("arguments") or "{}"
    try:
        arguments = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        arguments = None
    if not isinstance(arguments, dict):
        field = f"{where}.function.arguments"
        raise errors.refused(f"{field!r} must be the text of a JSON object.", field)
    return {"toolUse": {"toolUseId": use_id, "name": name, "input": arguments}}


def thought_of(block: Block) -> dict[str, Any] | None:
    """A block of reasoning as it is given out; None where it is none that can be given back."""
    if "redactedContent" in block:
        data = base64.b64encode(block["redactedContent"]).decode()
        return {"type": "redacted_thinking", "data": data}
    text = block.get("reasoningText")
    if not isinstance(text, dict):
        return None
    thought = {"type": "thinking", "thinking": text.get("text", "")}
    return thought | ({"signature": text["signature"]} if text.get("signature") else {})


def _thought(thought: dict[str, Any], where: str) -> Block:
    if thought.get("type") == "redacted_thinking":
        return {"reasoningContent": {"redactedContent": _bytes(thought.get("data"), where)}}
    text = thought.get("thinking")
    if not isinstance(text, str):
        raise wrong_type(where, "a list of thoughts", thought)
    signature = thought.get("signature")
    signed = {"signature": signature} if isinstance(signature, str) and signature else {}
    return {"reasoningContent": {"reasoningText": {"text": text, **signed}}}


def _part(part: object, where: str) -> Iterator[Block]:
    if not isinstance(part, dict):
        raise wrong_type(where, "a part of a message", part)
    kind = part.get("type")
    if kind in ("text", "refusal"):
        text = part.get(kind)
        if not isinstance(text, str):
            raise wrong_type(f"{where}.{kind}", "a string", text)
        if text.strip():
            yield {"text": text}
    elif kind == "image_url":
        yield _image(part.get("image_url"), f"{where}.image_url")
    else:
        raise errors.refused(
            f"{where!r} is of type {kind!r}; this model takes text and image_url.",
            where,
            "unsupported_parameter",
        )
    if isinstance(part.get("cache_control"), dict):
        yield {"cachePoint": {"type": "default"}}


def _image(image: object, where: str) -> Block:
    url = image.get("url") if isinstance(image, dict) else image
    if not isinstance(url, str):
        raise wrong_type(where, "an object with a url", image)
    found = _DATA_URL.fullmatch(url)
    if found is None or found[1] not in _FORMATS:
        raise errors.refused(
            f"{where!r} must be a data URL of a PNG, JPEG, GIF or WebP in base64: images are not "
            "fetched for a request.",
            where,
        )
    return {"image": {"format": _FORMATS[found[1]], "source": {"bytes": _bytes(found[2], where)}}}


def _bytes(text: object, where: str) -> bytes:
    try:
        return base64.b64decode(str(text), validate=True)
    except (binascii.Error, ValueError):
        raise errors.refused(f"{where!r} is no base64.", where) from None


__all__ = ["Block", "blocks_of", "reasoning_blocks", "thought_of", "tool_use"]
