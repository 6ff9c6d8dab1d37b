"""Settings of shadows and recordings as users type them, to what the admin API takes. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.control.declared.fields import leaves, named
from penstock.control.declared.listing import json_of, key_list, typed
from penstock.control.errors import invalid_setting
from penstock.control.serving.settings_text import pairs


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What may be named: the fields of a dataclass, some by other names than they have there."""

    kind: type
    apart: Collection[str]  # fields that are said otherwise
    names: Mapping[str, str]  # by field, as people read them: "until.at", "margin.CHECK"
    inner: Mapping[str, str]  # beginnings of names, and the object that the rest is a field of
    verbatim: Mapping[str, str] = field(default_factory=dict)  # the same; nothing of it is read

    def listed(self, **defaults: Any) -> str:
        """What there is, for `--help`."""
        return key_list(named(self.kind, without=self.apart), names=self.names, **defaults)

    @property
    def keys(self) -> list[str]:
        """As people read them."""
        found = named(self.kind, without=self.apart)
        return [self.names.get(leaf.name, leaf.name) for leaf in found]


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
    fields = {known.names.get(leaf.name, leaf.name): leaf for leaf in leaves(known.kind)}
    for name, text in pairs(read, "setting", "share_permille=100").items():
        if begins := _beginning(name, known.inner):
            asked.setdefault(known.inner[begins], {})[name.removeprefix(begins)] = json_of(text)
        elif name in known.keys:
            asked[name] = typed(fields[name], text)
        else:
            there = ", ".join(known.keys)
            raise invalid_setting(f"{name}: there is no such key; there are {there}")
    return asked


def _beginning(name: str, known: Collection[str]) -> str:
    return next((part for part in known if name.startswith(part)), "")
