"""Thresholds as people declare them: a TOML file, or `key=value`. Pure."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any

from penstock.evals.errors import EvalError

Within = Mapping[str, tuple[float, float]]
"""The ends that a number lies between, by its key."""


class BadThresholds(EvalError):
    """Thresholds that cannot be used: which, and what they must be."""


def from_toml(text: str) -> dict[str, Any]:
    """What a file declares. Raises `BadThresholds`."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadThresholds(f"the thresholds' file is no TOML: {error}") from error


def from_word(word: str) -> dict[str, Any]:
    """What `key=value` declares. Raises `BadThresholds`."""
    key, _, value = word.partition("=")
    try:
        return {key.strip(): float(value)}
    except ValueError:
        raise BadThresholds(f"{key.strip()}: {value!r} is no number") from None


def number(key: str, value: object, within: tuple[float, float]) -> float:
    """A number that lies within both ends. Raises `BadThresholds`."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadThresholds(f"{key} is {value!r}: it must be a number")
    least, most = within
    if not least <= value <= most:
        raise BadThresholds(f"{key} is {value:g}: it must lie between {least:g} and {most:g}")
    return float(value)


def numbers(
    told: Mapping[str, Any], limits: Within, settings: Within, *others: str
) -> tuple[dict[str, float], dict[str, Any]]:
    """What was declared, limits and settings apart. `others`: what else there is to declare. Raises
    `BadThresholds`."""
    found: dict[str, Any] = {}
    for key, value in told.items():
        if key not in limits and key not in settings:
            known = ", ".join([*limits, *settings, *others])
            raise BadThresholds(f"there is no threshold {key!r}: there are {known}")
        found[key] = number(key, value, limits[key] if key in limits else settings[key])
    if "min_prompts" in found:
        found["min_prompts"] = round(found["min_prompts"])
    of_limits = {key: found.pop(key) for key in limits if key in found}
    return of_limits, found
