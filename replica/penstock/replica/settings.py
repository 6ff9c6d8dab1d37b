"""The replica's settings: the command line and the environment, read once and checked."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from penstock.adapters.adapter import AdapterRef, BadAdapterRef
from penstock.adapters.lora_config import LARGEST_RANK
from penstock.adapters.version import is_digest
from penstock.replica.ports import checked
from penstock.replica.values import AdapterSource, CannotLoad, SleepSettings

PROVIDERS = ("bedrock", "openai", "canned")
"""Engines for which another party answers, or nobody."""

ENGINES = ("vllm", "simulated", *PROVIDERS)

_BY_DIGEST = "sha256:"
_SLEEP = SleepSettings()
_SOURCES = "an absolute directory, a name that the replica ships, or sha256:<digest>"


@dataclass(frozen=True, slots=True)
class Settings:
    """What a replica is to be. Durations in seconds."""

    replica_id: str
    deployment: str
    engine: str
    model: str
    served_name: str
    engine_args: Mapping[str, str]  # of the engine itself: vLLM's flags without dashes, and so on
    adapters: tuple[AdapterSource, ...]  # loaded before the replica is ready
    max_adapters: int  # that it holds at once; 0: as `AdapterRoom.slots_for` says
    max_adapter_rank: int  # 0: the engine's default
    max_ongoing: int  # calls it may be sent at once; 0: as many as the engine runs
    listen: str  # "host:port"; port 0: any free one; "host:first-last": one of these
    agent: str  # of the node, "host:port"; empty: none, for tests and tools
    log_level: str = "info"
    # What callers have to show, and what it shows its agent; empty: nothing.
    callers_token: str = field(default="", repr=False)
    own_token: str = field(default="", repr=False)
    probe_every: float = 2.0  # between checks that the engine makes progress
    hung_after: float = 10.0  # without a step, an answer or CPU time
    stuck_after: float = 600.0  # at work on one step
    allow_model_code: bool = False  # engine arguments may make it run code that comes with a model
    drain: float = 30.0  # that running calls get after SIGTERM
    adapter_load_timeout: float = 30.0  # that a call waits for its adapter
    secrets_dir: str = ""  # what a provider's secret files lie below; empty: there are none
    provider_hosts: tuple[str, ...] = ()  # that a provider's may be; none: any
    provider_variables: tuple[str, ...] = ()  # that may hold a provider's key; "*": any letters
    sleep: SleepSettings = _SLEEP
    microserving: bool = False  # it computes KV and moves it: MicroServing
    microserving_rest: bool = False  # and the same by REST, on a port of its own


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise CannotLoad(f"settings: {message}")


def parse_settings(argv: Sequence[str] | None = None) -> Settings:
    """Settings from the command line. Raises `CannotLoad` that names what is wrong."""
    told = vars(_parser().parse_args(argv))
    engine_args = engine_args_of(told.pop("engine_arg"))
    told |= {
        "served_name": told["served_name"] or told["deployment"],
        "engine_args": {key: engine_args[key] for key in engine_args if key not in PATIENCE},
        "adapters": tuple(_adapter(text, told["agent"]) for text in told.pop("adapter")),
        # Taken out: neither processes of the engine nor a model's code inherit them.
        "callers_token": os.environ.pop("PENSTOCK_CALLERS_TOKEN", ""),
        "own_token": os.environ.pop("PENSTOCK_REPLICA_TOKEN", ""),
        "hung_after": _patience(engine_args, "engine_hung_after", 10.0),
        "stuck_after": _patience(engine_args, "engine_stuck_after", 600.0),
        "sleep": SleepSettings(
            told.pop("sleep"),
            _whole(engine_args, "sleep_cycles", _SLEEP.cycles),
            _whole(engine_args, "sleep_growth_percent", _SLEEP.growth_percent),
        ),
    }
    if told["microserving_rest"] and not told["microserving"]:
        raise CannotLoad("settings: --microserving-rest needs --microserving")
    return Settings(**told)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m penstock.replica",
        description="Serves one model to Penstock's gateways, over gRPC.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--replica-id", required=True, help="name of this replica, unique in the system")
    add("--deployment", required=True, help="the deployment that it serves")
    add("--engine", required=True, choices=ENGINES)
    add("--model", required=True, help="directory, hub id, or a name that the replica ships")
    add("--served-name", default="", help="model name in answers (default: the deployment)")
    add("--engine-arg", action="append", default=[], metavar="KEY=VALUE", help="may be repeated")
    add("--adapter", action="append", default=[], metavar="NAME@VERSION=SOURCE", help=_SOURCES)
    add("--max-adapters", type=_count, default=0, help="adapters that it holds at once")
    add("--max-adapter-rank", type=_rank, default=0, help="of any of them (0: the engine's)")
    add("--adapter-load-timeout", type=_seconds, default=30.0, metavar="SECONDS")
    add("--sleep", type=int, choices=(0, 1, 2), default=0, help="level that it may be put to")
    add("--microserving", action="store_true", help="it computes KV, and moves it")
    add("--microserving-rest", action="store_true", help="the same by REST, on a port of its own")
    add("--max-ongoing", type=_count, default=0, help="calls it may be sent at once (0: engine's)")
    add("--listen", type=checked, default="127.0.0.1:0", metavar="HOST:PORT or HOST:FIRST-LAST")
    add("--agent", default="", metavar="HOST:PORT", help="node agent to register with")
    add("--log-level", default=os.environ.get("PENSTOCK_LOG_LEVEL", "info"), choices=_LEVELS)
    add("--probe-every", type=_seconds, default=2.0, metavar="SECONDS")
    add("--allow-model-code", action="store_true", help="engine arguments may run a model's code")
    add("--drain", type=_seconds, default=30.0, metavar="SECONDS")
    add("--secrets-dir", default="", metavar="PATH", help="where a provider's secret files are")
    variables = os.environ.get("PENSTOCK_PROVIDER_VARIABLES", "*_API_KEY")
    keys, hosts = "that hold keys", "that providers may be (any)"
    add("--provider-variables", type=_listed, default=variables, metavar="NAME,...", help=keys)
    add("--provider-hosts", type=_listed, default="", metavar="HOST,...", help=hosts)
    return parser


PATIENCE = ("engine_hung_after", "engine_stuck_after", "sleep_cycles", "sleep_growth_percent")
"""Settings that a deployment gives among its engine's arguments, but are the replica's."""


def _patience(engine_args: Mapping[str, str], key: str, default: float) -> float:
    text = engine_args.get(key, str(default))
    try:
        return _seconds(text)
    except (ValueError, argparse.ArgumentTypeError):
        raise CannotLoad(f"engine setting {key}={text}: say seconds, more than 0") from None


def _whole(engine_args: Mapping[str, str], key: str, default: int) -> int:
    text = engine_args.get(key, str(default))
    try:
        return _count(text)
    except (ValueError, argparse.ArgumentTypeError):
        raise CannotLoad(f"engine setting {key}={text}: say a whole number, 0 or more") from None


_LEVELS = ("debug", "info", "warning", "error")


def _listed(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(",")))


def _count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text} must not be negative")
    return number


def _rank(text: str) -> int:
    rank = _count(text)
    if rank > LARGEST_RANK:
        raise argparse.ArgumentTypeError(f"{text} is above {LARGEST_RANK}, the largest rank")
    return rank


def _seconds(text: str) -> float:
    number = float(text)
    if number <= 0:
        raise argparse.ArgumentTypeError(f"{text} must be more than 0")
    return number


def engine_args_of(texts: Sequence[str]) -> Mapping[str, str]:
    """Engine arguments of a command line, "key=value" each. Raises `CannotLoad`."""
    engine_args: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise CannotLoad(f"settings: engine argument {text!r} must be KEY=VALUE")
        if key in engine_args:
            raise CannotLoad(f"settings: engine argument {key!r} stands twice: keep one")
        engine_args[key] = value
    return engine_args


def _adapter(text: str, agent: str) -> AdapterSource:
    name, equals, source = text.partition("=")
    if not equals or not source:
        raise CannotLoad(f"settings: adapter {text!r} must be NAME@VERSION=SOURCE")
    try:
        ref = str(AdapterRef.parse(name))
    except BadAdapterRef as error:
        raise CannotLoad(f"settings: {error}") from error
    if not source.startswith(_BY_DIGEST):
        return AdapterSource(ref, source)
    digest = source.removeprefix(_BY_DIGEST)
    if not is_digest(digest):
        raise CannotLoad(
            f"settings: adapter {text!r}: sha256: is followed by 64 hexadecimal digits"
        )
    if not agent:
        raise CannotLoad(f"settings: adapter {text!r} comes from a node agent: set --agent")
    return AdapterSource(ref, digest=digest)
