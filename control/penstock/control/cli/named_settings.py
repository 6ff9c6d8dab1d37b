"""Settings of shadows and recordings as users type them, to what the admin API takes. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from penstock.control.serving.settings_text import pairs


def named_settings(
    words: Iterable[str], lists: Collection[str], inner: Mapping[str, str]
) -> dict[str, Any]:
    """What is named. `lists`: names of values with commas between; `inner`: beginnings of names,
    such as "until.", with the object that the rest is a field of. Raises `InvalidSetting`."""
    asked: dict[str, Any] = {}
    for name, text in pairs(words, "setting", "share_permille=100").items():
        begins = next((part for part in inner if name.startswith(part)), "")
        if begins:
            asked.setdefault(inner[begins], {})[name.removeprefix(begins)] = _value(text)
        else:
            asked[name] = _listed(text) if name in lists else _value(text)
    return asked


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
