"""Engines that a managed provider answers for, and the settings that each has. Pure.

What a provider cannot do with a setting shows when it is asked; what is found here is found when a
deployment is asked for. A secret is given by reference: the name of a variable of the node agent's
environment, or of a file below the node's secrets directory. Errors repeat no value in whose place
somebody may have put one.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from penstock.control.errors import InvalidSpec
from penstock.control.state.providers.secret_texts import looks_secret, names_secret

MANAGED = ("bedrock", "openai", "canned")
"""Engines without an engine of ours behind them: a provider answers, or nothing but a text."""

START_LIMIT_MS = 60_000
"""From the process's start to ready, where the spec says nothing: such a replica loads no model."""

Settings = tuple[tuple[str, str], ...]

_VARIABLE = re.compile(r"(?!AWS_|HF_|PENSTOCK_)[A-Z_][A-Z0-9_]{0,127}")
_REGION = re.compile(r"[a-z]{2,}(-[a-z]+)+-[0-9]+")
_ROLE = re.compile(r"arn:aws[a-z-]*:iam::[0-9]{12}:role/[\w+=,.@/-]+")
_FEATURES = ("hosted_tools", "model_fields", "store", "stored_objects", "thinking", "web_search")
_OWN_FIELD = re.compile(r"field:[A-Za-z_][A-Za-z0-9_]{0,63}")
_TIER = re.compile(r"[a-z][a-z0-9_-]{0,31}:(?!0+(\.0+)?$)[0-9]{1,2}(\.[0-9]{1,6})?")
_OPENAI_HOST = "api.openai.com"


@dataclass(frozen=True, slots=True)
class _Kind:
    must_be: str
    fits: Callable[[str], bool]
    shown: bool = True  # a value that does not fit may be repeated: nobody takes it for a secret


def _whole(least: int, most: int) -> Callable[[str], bool]:
    return lambda text: (
        text.isascii() and text.isdigit() and len(text) < 12 and least <= int(text) <= most
    )


def _is_price(text: str) -> bool:
    try:
        return 0 <= float(text) <= 1_000_000 and math.isfinite(float(text))
    except ValueError:
        return False


def _are_features(text: str) -> bool:
    words = [word.strip() for word in text.split(",")]
    return all(word in _FEATURES or _OWN_FIELD.fullmatch(word) for word in words)


def _are_tiers(text: str) -> bool:
    return all(_TIER.fullmatch(word.strip()) for word in text.split(","))


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        named = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return named and "@" not in parts.netloc and not set("?# ").intersection(text)


def _is_below_secrets(text: str) -> bool:
    path = PurePosixPath(text)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts


_DURATION = _Kind("a whole number of milliseconds, 1 to 3600000", _whole(1, 3_600_000))
_PRICE = _Kind("US dollars for a million tokens, such as 0.15", _is_price)
_SWITCH = _Kind("true or false", lambda text: text in ("true", "false"))
_WORD = _Kind("a name", lambda text: bool(text.strip()))
_FILE = _Kind(
    "a path below the node's secrets directory, relative and without .., such as openai.key;"
    " what was given is not repeated, it may be a secret",
    _is_below_secrets,
    shown=False,
)
_URL = _Kind(
    "an http or https URL without user, password, ? and #, such as https://api.openai.com/v1;"
    " what was given is not repeated, it may hold a secret",
    _is_url,
    shown=False,
)
_NAME_OF_VARIABLE = _Kind(
    "the name of a variable of the node agent's environment, in capitals, such as OPENAI_API_KEY,"
    " and none of AWS_*, HF_* and PENSTOCK_*, which are for others than this provider;"
    " what was given is not repeated, it may be the key itself",
    lambda text: bool(_VARIABLE.fullmatch(text)),
    shown=False,
)

_COMMON: Mapping[str, _Kind] = {
    "answer_timeout_ms": _DURATION,
    "connect_timeout_ms": _DURATION,
    "first_event_timeout_ms": _DURATION,
    "between_events_timeout_ms": _DURATION,
    "retries": _Kind("a whole number, 0 to 10", _whole(0, 10)),
    "usd_per_million_input": _PRICE,
    "usd_per_million_output": _PRICE,
    "usd_per_million_cached": _PRICE,
    "usd_per_million_cache_write": _PRICE,
    "usd_per_million_cache_write_1h": _PRICE,
    "provider_features": _Kind(
        f"features between commas, of {', '.join(_FEATURES)} and field:NAME", _are_features
    ),
    "service_tiers": _Kind(
        "tiers between commas, each with its factor of the prices, such as flex:0.5,priority:2",
        _are_tiers,
    ),
    "max_choices": _Kind("a whole number, 1 to 128", _whole(1, 128)),
    "max_model_len": _Kind("a whole number of tokens, 0 or more", _whole(0, 1_000_000_000)),
    "tools": _SWITCH,
    "max_calls": _Kind("a whole number of calls at once, 1 to 1000", _whole(1, 1000)),
}
_OWN: Mapping[str, Mapping[str, _Kind]] = {
    "bedrock": {
        "region": _Kind(
            "an AWS region, such as eu-west-1", lambda text: bool(_REGION.fullmatch(text))
        ),
        "profile": _WORD,
        "role_arn": _Kind(
            "a role, such as arn:aws:iam::123456789012:role/bedrock",
            lambda text: bool(_ROLE.fullmatch(text)),
        ),
        "endpoint_url": _URL,
        "guardrail_id": _WORD,
        "guardrail_version": _WORD,
    },
    "openai": {
        "base_url": _URL,
        "api_key_env": _NAME_OF_VARIABLE,
        "api_key_file": _FILE,
        "organization": _WORD,
        "headers_file": _FILE,
    },
    "canned": {"text": _Kind("what is answered, not empty", lambda text: bool(text.strip()))},
}


def settings_of(engine: str) -> tuple[str, ...]:
    """The names of a managed engine's settings."""
    return tuple(sorted({**_COMMON, **_OWN[engine]}))


def check_provider(engine: str, settings: Settings) -> None:
    """Raises `InvalidSpec` for a setting that the engine has not, or whose value it cannot be."""
    kinds = {**_COMMON, **_OWN[engine]}
    for key, value in settings:
        if key not in kinds:
            raise InvalidSpec(f"the engine {engine} has no setting {key!r}{_nearest(key, kinds)}")
        kind = kinds[key]
        if not kind.fits(value):
            shown = f"is {value!r}: it " if kind.shown else ""
            raise InvalidSpec(f"engine setting {key} {shown}must be {kind.must_be}")
    _check_together(engine, dict(settings))


def check_no_secrets(
    engine: str, model: str, settings: Settings, labels: Iterable[tuple[str, str]]
) -> None:
    """Raises `InvalidSpec` for a secret that was written into a managed deployment's spec, without
    repeating it."""
    if engine not in MANAGED:
        return
    for key, value in settings:
        if looks_secret(key):
            raise InvalidSpec(f"a key of engine_args looks like a secret{_instead(engine)}")
        known = key in _COMMON or key in _OWN[engine]
        if not known and names_secret(key):
            raise InvalidSpec(f"engine setting {key} would be a secret{_instead(engine)}")
        if looks_secret(value):
            raise InvalidSpec(
                f"the value of engine setting {key} looks like a secret{_instead(engine)}"
            )
    if looks_secret(model):
        raise InvalidSpec(f"model looks like a secret{_instead(engine)}")
    if any(looks_secret(key) or looks_secret(value) for key, value in labels):
        raise InvalidSpec(f"a label looks like a secret{_instead(engine)}")


def calls_tools(engine: str, settings: Settings) -> bool:
    """Whether a request that brings tools may come here from another deployment. A text calls none,
    unless its operator says that it will do."""
    told = dict(settings).get("tools", "false" if engine == "canned" else "true")
    return engine not in MANAGED or told != "false"


def _check_together(engine: str, given: Mapping[str, str]) -> None:
    if engine == "canned" and "text" not in given:
        raise InvalidSpec("the engine canned needs the setting text: what it answers")
    if engine == "bedrock" and ("guardrail_id" in given) != ("guardrail_version" in given):
        raise InvalidSpec("guardrail_id and guardrail_version go together: name both or neither")
    if engine == "openai":
        _check_key(given)


def _check_key(given: Mapping[str, str]) -> None:
    named = [key for key in ("api_key_env", "api_key_file") if key in given]
    if len(named) == 2:
        raise InvalidSpec("api_key_env and api_key_file are both given: keep one of them")
    host = urlsplit(given["base_url"]).hostname if "base_url" in given else _OPENAI_HOST
    if not named and host == _OPENAI_HOST and "headers_file" not in given:
        raise InvalidSpec(
            f"{_OPENAI_HOST} needs a key: name where it is by api_key_env, a variable of the node"
            " agent's environment, or by api_key_file, a file below the node's secrets directory"
        )


def _instead(engine: str) -> str:
    """What to do in place of writing a secret."""
    ways = {
        "openai": "name where it is by api_key_env, api_key_file or headers_file",
        "bedrock": "give it to the node agent the way AWS's own tools find it (environment, profile"
        " or the instance's role), and name a profile or role_arn here",
        "canned": "leave it out",
    }
    return f", and secrets do not stand in specs: {ways[engine]}; it is not repeated here"


def _nearest(key: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(key.lower().replace("-", "_"), known, n=3)
    return f"; near to it: {', '.join(near)}" if near else f": it has {', '.join(sorted(known))}"
