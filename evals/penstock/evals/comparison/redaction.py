"""Takes personal data and secrets out of requests before they are kept: rules that ship, and the
operator's. Pure: the clock that bounds how long the operator's patterns may look is the caller's.

What is found becomes its rule's name in brackets. Texts are looked at one by one, keys and whole
numbers of a body too. What stands under a key that the operator names is taken out whole, in JSON
within a text as well, such as a tool's arguments. Token ids are left as they are: who must not keep
prompts records no such.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from penstock.evals.comparison.bad_check import BadCheck
from penstock.evals.comparison.own_patterns import own_pattern
from penstock.evals.comparison.secrets import SHIPPED, Span

MOST_PATTERNS: Final = 64
MOST_KEYS: Final = 1000
LONGEST_KEY: Final = 200
WITHHELD: Final = "withheld: its patterns took too long"
TOO_DEEP: Final = "withheld: it nests too deeply"


@dataclass(frozen=True, slots=True)
class Rules:
    """What is taken out."""

    own: Mapping[str, Any] = field(default_factory=dict)  # the operator's, compiled
    seconds: float = 1.0  # that the operator's patterns may look at one body
    keys: frozenset[str] = frozenset()  # whose values are taken out whatever they are, case folded

    @property
    def names(self) -> tuple[str, ...]:
        """Every rule's name, as a recording's header has them."""
        return (*(_key_rule(each) for each in sorted(self.keys)), *self.own, *SHIPPED)


@dataclass(frozen=True, slots=True)
class Redacted:
    """A body without what was found, and how often each rule found something."""

    body: Any
    found: Mapping[str, int]


def rules(
    own: Mapping[str, str] | None = None,
    seconds: float = 1.0,
    keys: Collection[str] = (),
) -> Rules:
    """Those that ship, and the operator's words: patterns by name, and keys whose values are always
    taken out. Raises `BadCheck`."""
    if len(own or ()) > MOST_PATTERNS:
        raise BadCheck(f"there are more than {MOST_PATTERNS} patterns")
    compiled = {name: own_pattern(name, told, SHIPPED) for name, told in (own or {}).items()}
    return Rules(compiled, seconds, _folded(keys))


def redact(body: Any, held: Rules, now: Callable[[], float]) -> Redacted:
    """A JSON value without what the rules find; the value itself stays as it is. A request's
    `model` is kept. Where the operator's patterns run out of time, what is left of its texts is
    withheld."""
    work = _Work(held, now() + held.seconds, now)
    kept = {"model": body["model"]} if isinstance(body, dict) and "model" in body else {}
    changed = work.value(body)
    return Redacted({**changed, **kept} if kept else changed, dict(work.found))


def _folded(keys: Collection[str]) -> frozenset[str]:
    if len(keys) > MOST_KEYS:
        raise BadCheck(f"there are more than {MOST_KEYS:,} keys")
    for key in keys:
        if not 0 < len(key) <= LONGEST_KEY:
            raise BadCheck(f"{key[:LONGEST_KEY]!r} is no key: 1 to {LONGEST_KEY} characters")
    return frozenset(key.casefold() for key in keys)


def _key_rule(key: str) -> str:
    return f"key {key}"


@dataclass(slots=True)
class _Work:
    held: Rules
    until: float
    now: Callable[[], float]
    found: Counter[str] = field(default_factory=Counter)
    late: bool = False

    def value(self, value: Any) -> Any:
        """Without recursion: bodies nest as deep as they like."""
        top = [value]
        left: list[tuple[Any, Any]] = [(top, 0)]
        while left:
            holder, key = left.pop()
            holder[key] = changed = self._changed(holder[key])
            if isinstance(changed, dict):
                left.extend((changed, each) for each in changed)
            elif isinstance(changed, list):
                left.extend((changed, each) for each in range(len(changed)))
        return top[0]

    def _changed(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, list):
            return list(value)
        if isinstance(value, dict):
            return self._renamed(value)
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**6:
            text = self._text(str(value))
            return value if text == str(value) else text
        return value

    def _renamed(self, value: Mapping[str, Any]) -> dict[str, Any]:
        renamed: dict[str, Any] = {}
        for key, each in value.items():
            name = self._text(key)
            while name in renamed:  # two that look alike now
                name = f"{name} {len(renamed)}"
            renamed[name] = self._unless_taken(key, each)
        return renamed

    def _unless_taken(self, key: str, value: Any) -> Any:
        if (folded := key.casefold()) not in self.held.keys:
            return value
        self.found[_key_rule(folded)] += 1
        return f"[{_key_rule(folded)}]"

    def _within(self, text: str) -> str:
        """A text that is JSON, without what stands under the keys."""
        if not self.held.keys or text.lstrip()[:1] not in ("{", "["):
            return text
        try:
            told = json.loads(text)
            kept = self.value(told)
            return text if kept == told else json.dumps(kept, ensure_ascii=False)
        except ValueError:
            return text
        except RecursionError:
            return f"[{TOO_DEEP}]"

    def _text(self, text: str) -> str:
        text = self._within(text)
        for name, pattern in self.held.own.items():
            text = self._without(text, name, self._own(pattern, text))
        for name, find in SHIPPED.items():
            text = self._without(text, name, find(text))
        return f"[{WITHHELD}]" if self.late and text else text

    def _own(self, pattern: Any, text: str) -> list[Span]:
        left = self.until - self.now()
        if self.late or left <= 0:
            self.late = True
            return []
        try:
            return [found.span() for found in pattern.finditer(text, timeout=left)]
        except (TimeoutError, MemoryError):
            self.late = True
            return []

    def _without(self, text: str, name: str, spans: Iterable[Span]) -> str:
        parts, end = [], 0
        for start, stop in spans:
            if start < end or stop == start:
                continue
            self.found[name] += 1
            parts += [text[end:start], f"[{name}]"]
            end = stop
        return "".join([*parts, text[end:]]) if parts else text
