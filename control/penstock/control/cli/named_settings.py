"""Settings of shadows and recordings as users type them, to what the admin API takes. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.control.errors import invalid_setting
from penstock.control.serving.settings_text import pairs


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What may be named."""

    keys: Collection[str]  # as people read them: "until.at", "margin.CHECK"
    lists: Collection[str]  # names of values with commas between
    inner: Mapping[str, str]  # beginnings of names, and the object that the rest is a field of
    verbatim: Mapping[str, str] = field(default_factory=dict)  # the same; nothing of it is read


def named_settings(words: Iterable[str], known: Vocabulary) -> dict[str, Any]:
    """What is named. Raises `invalid-setting`."""
    asked: dict[str, Any] = {}
    read = []
    for word in words:
        if begins := _beginning(word, known.verbatim):
            name, _, text = word.removeprefix(begins).partition("=")
            asked.setdefault(known.verbatim[begins], {})[name] = text
        else:
            read.append(word)
    for name, text in pairs(read, "setting", "share_permille=100").items():
        if begins := _beginning(name, known.inner):
            asked.setdefault(known.inner[begins], {})[name.removeprefix(begins)] = _value(text)
        elif name in known.keys:
            asked[name] = _listed(text) if name in known.lists else _value(text)
        else:
            there = ", ".join(known.keys)
            raise invalid_setting(f"{name}: there is no such key; there are {there}")
    return asked


def _beginning(name: str, known: Collection[str]) -> str:
    return next((part for part in known if name.startswith(part)), "")


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
