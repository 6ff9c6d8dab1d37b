"""Parts of OpenAI's messages as Converse's content blocks. Pure."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from typing import Any, Final, NoReturn

from penstock.replica.providers import errors
from penstock.replica.providers.requests import wrong_type

Block = dict[str, Any]

_TOOL_ID: Final = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")
_TOOL_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_TTLS: Final = ("5m", "1h")
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
    if not isinstance(text, str):
        raise wrong_type(f"{where}.function.arguments", "a text", text)
    check_name(name, f"{where}.function.name")
    return {"toolUse": {"toolUseId": tool_id(use_id), "name": name, "input": _arguments(text)}}


def tool_id(given: str) -> str:
    """The id of a call as Converse takes it: the same in the call and in its result, whoever gave
    it."""
    if _TOOL_ID.fullmatch(given):
        return given
    return f"id_{hashlib.sha256(given.encode(errors='replace')).hexdigest()[:32]}"


def check_name(name: str, where: str) -> None:
    """Raises `ProviderFailed` for a name of a tool that Converse has no room for."""
    if not _TOOL_NAME.fullmatch(name):
        raise errors.unsupported(where, "names of tools have 1 to 64 of a-z, A-Z, 0-9, _ and -")


def marked(blocks: list[Block], holder: dict[str, Any], where: str) -> list[Block]:
    """The blocks, and behind them the point to which a mark of what they come from has the cache
    go. What says nothing has nothing to be kept."""
    mark = holder.get("cache_control")
    if mark is None or not blocks or "cachePoint" in blocks[-1]:
        return blocks
    ttl = mark.get("ttl") if isinstance(mark, dict) else mark
    if ttl not in (None, *_TTLS):
        raise errors.unsupported(f"{where}.cache_control", f"its ttl is one of {_TTLS}")
    return [*blocks, {"cachePoint": {"type": "default", **({"ttl": ttl} if ttl else {})}}]


def _arguments(text: str) -> dict[str, Any]:
    """What a model said in a call, as an object; what is none becomes a field of one."""
    try:
        arguments = json.loads(text, parse_constant=_no_number)
        json.dumps(arguments, allow_nan=False)
    except (ValueError, RecursionError):
        arguments = text
    return arguments if isinstance(arguments, dict) else {"arguments": arguments}


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON")


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


def _part(part: object, where: str) -> list[Block]:
    if not isinstance(part, dict):
        raise wrong_type(where, "a part of a message", part)
    kind = part.get("type")
    blocks: list[Block] = []
    if kind in ("text", "refusal"):
        text = part.get(kind)
        if not isinstance(text, str):
            raise wrong_type(f"{where}.{kind}", "a string", text)
        if text.strip():
            blocks.append({"text": text})
    elif kind == "image_url":
        blocks.append(_image(part.get("image_url"), f"{where}.image_url"))
    else:
        raise errors.unsupported(where, f"it is of type {kind!r}; text and image_url are served")
    return marked(blocks, part, where)


def _image(image: object, where: str) -> Block:
    url = image.get("url") if isinstance(image, dict) else image
    if not isinstance(url, str):
        raise wrong_type(where, "an object with a url", image)
    found = _DATA_URL.fullmatch(url)
    if found is None or found[1] not in _FORMATS:
        raise errors.unsupported(
            where,
            "it must be a data URL of a PNG, JPEG, GIF or WebP in base64: images are not fetched "
            "for a request",
        )
    data = _bytes(found[2], where)
    if not data:
        raise errors.refused(f"{where!r} is an image without a byte.", where)
    return {"image": {"format": _FORMATS[found[1]], "source": {"bytes": data}}}


def _bytes(text: object, where: str) -> bytes:
    try:
        return base64.b64decode(str(text), validate=True)
    except (binascii.Error, ValueError):
        raise errors.refused(f"{where!r} is no base64.", where) from None
