"""What a user asks of `penstock serve`, turned into the deployment that the head is asked for.

Pure, but for one look whether a model is a directory.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from penstock.adapters.adapter import AdapterRef, BadAdapterRef
from penstock.control.data_dir import admin_token_path
from penstock.control.errors import InvalidSpec, invalid_setting
from penstock.control.settings import (
    ADAPTER_CACHE_GIB,
    ADMIN_ADDRESS,
    GATEWAY_ADDRESS,
    LOGS,
    METRICS_ADDRESS,
    RPC_ADDRESS,
    START_LIMIT,
    GatewayTls,
    LogRetention,
    check_public_url,
    reachable,
    split_address,
)
from penstock.control.state.rollout.deployment import check_name
from penstock.control.state.rollout.template import USUAL_ADAPTERS
from penstock.control.trace_choice import TRACES, TraceChoice

DEFAULT_MODEL = "penstock-mini"
EMBEDDING_MODEL = "penstock-embed"
DEFAULT_ADAPTERS = ("pirate=pirate@1=penstock-mini/pirate", "json=json@1=penstock-mini/json")
LABELS = {"managed-by": "serve"}
SAID = ("model", "engine", "replicas", "max_adapters", "max_adapter_rank")
PATH_LIKE = re.compile(r"[./~]|.*\\")
LONGEST_NAME = 63


@dataclass(frozen=True, slots=True)
class Adapter:
    """An adapter version, and the alias that clients name it by."""

    alias: str
    name: str  # "name@version"
    source: str
    comes_along: bool = (
        False  # nobody asked for it: an alias that was moved since stays where it is
    )


@dataclass(frozen=True, slots=True)
class Files:
    """Files that say what there is to be."""

    sources: tuple[str, ...]
    watch: bool = True  # they are applied again when they change
    force: bool = False  # what others have set is overwritten
    others: tuple[str, ...] = ()  # deployments in them, beside the one that `name` says


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """Everything that `penstock serve` was told. Raises `invalid-setting` for what cannot be."""

    model: str
    name: str  # of the deployment: what clients say as "model"
    data_dir: Path  # absolute
    engine: str = "vllm"
    replicas: int = 1
    engine_args: Mapping[str, str] = field(default_factory=dict)
    adapters: tuple[Adapter, ...] = ()
    max_adapters: int = 0  # that a replica holds at once; 0: a few, where any are named
    max_adapter_rank: int = 0
    settings: Mapping[str, object] = field(default_factory=dict)  # of the deployment; rest: default
    # Which of these somebody gave: where a deployment is stored, the others stay as they are there.
    said: frozenset[str] = frozenset()  # of SAID
    files: Files | None = None  # what is served, they say; none: what is said here
    gateway: str = GATEWAY_ADDRESS
    admin: str = ADMIN_ADDRESS
    rpc: str = RPC_ADDRESS
    metrics: str = METRICS_ADDRESS  # of the gateway
    head_metrics: str = ""  # empty: none
    node_metrics: str = ""
    gateway_threads: int | None = None
    gateway_binary: Path | None = None
    gateway_tls: GatewayTls | None = None  # None: plain HTTP
    public_url: str = ""  # where clients reach the gateway, where that is elsewhere
    open_gateway: bool = False  # listen beyond the loopback, for whoever reaches it
    allow_hosts: tuple[str, ...] = ()  # further names that gateway and admin API are called by
    client_addresses: bool = True  # in the gateway's log
    cors_origins: tuple[str, ...] = ()  # of web pages that may call the gateway; "*": any
    traces: TraceChoice = TRACES  # of the gateway
    explain_budget_bytes: int | None = None  # likewise; None: its own default
    allow_model_code: bool = False  # take engine arguments that run code which comes with a model
    start_limit: timedelta = START_LIMIT  # from a replica's start to ready, downloads included
    adapter_cache_gib: float = ADAPTER_CACHE_GIB  # of the node agent
    secrets_dir: Path | None = None  # of the node agent; None: `secrets` in `data_dir`
    provider_hosts: tuple[str, ...] = ()  # that its replicas may send to; empty: anywhere
    warm: int | None = None  # as `NodeSettings.warm`
    program_modules: tuple[str, ...] = ()  # as `NodeSettings.program_modules`
    take_over: bool = False  # as `penstock head --take-over`, once
    node_id: str = "local"
    log_level: str = "info"
    logs: LogRetention = LOGS

    def __post_init__(self) -> None:
        for flag, address in (*self.addresses, *self.metrics_addresses):
            split_address(address, flag=flag)
        check_public_url(self.public_url)
        try:
            check_name(self.name)
        except InvalidSpec as error:
            raise invalid_setting(f"--name is {self.name!r}: {error}") from error

    @property
    def addresses(self) -> tuple[tuple[str, str], ...]:
        """Every address that will be listened at, with the flag that sets it."""
        return (
            ("--gateway", self.gateway),
            ("--admin", self.admin),
            ("--rpc", self.rpc),
            ("--gateway-metrics", self.metrics),
        )

    @property
    def metrics_addresses(self) -> tuple[tuple[str, str], ...]:
        """Those of head and node agent: where one is taken, the process runs without."""
        addresses = ("--head-metrics", self.head_metrics), ("--node-metrics", self.node_metrics)
        return tuple((flag, address) for flag, address in addresses if address)

    @property
    def verb(self) -> str:
        """What the user typed."""
        return "up" if self.files else "serve"

    @property
    def deployments(self) -> list[str]:
        """That are asked for."""
        return [self.name, *(self.files.others if self.files else ())]

    @property
    def gateway_url(self) -> str:
        """Where a client on this machine reaches the gateway."""
        scheme = "http" if self.gateway_tls is None else "https"
        return f"{scheme}://{reachable(self.gateway, flag='--gateway')}"

    @property
    def admin_url(self) -> str:
        """Where the admin API is reached from this machine."""
        return f"http://{reachable(self.admin, flag='--admin')}"

    @property
    def admin_token_file(self) -> Path:
        """Holds a token for the admin API, once the head has started for the first time."""
        return admin_token_path(self.data_dir)

    @property
    def embeds(self) -> bool:
        """Whether the model is the one that comes with Penstock for embeddings."""
        return self.model == EMBEDDING_MODEL

    @property
    def adapter_slots(self) -> int:
        """Adapters that a replica holds at once: room for all that are named, and a few more."""
        if self.max_adapters or not self.adapters:
            return self.max_adapters
        return max(USUAL_ADAPTERS, len(self.adapters))

    @property
    def model_names(self) -> list[str]:
        """What clients may say as "model"."""
        adapters = (f"{self.name}:{adapter.alias}" for adapter in self.adapters)
        return [*self.deployments, *adapters]


def resolve_model(model: str) -> str:
    """The model as every process can find it: paths absolute. Raises `invalid-setting`."""
    path = Path(model).expanduser()
    if path.is_dir():
        return str(path.resolve())
    if path.exists():
        raise invalid_setting(f"model {model} is a file: name the directory with its config.json")
    if PATH_LIKE.match(model) or model.count("/") > 1:
        raise invalid_setting(
            f"model {model} is not there: name a directory, a Hugging Face id, or {DEFAULT_MODEL}"
        )
    return model


def deployment_name(model: str) -> str:
    """A deployment's name from its model: the last part, in the letters that names may have."""
    base = model.rstrip("/").rpartition("/")[2].lower()
    cleaned = re.sub(r"[^a-z0-9.-]+", "-", base)[:LONGEST_NAME].strip(".-")
    return cleaned or "model"


def parse_engine_args(settings: Iterable[str], one_string: str = "") -> dict[str, str]:
    """ "key=value" settings, repeated ones and those in one string. Raises `invalid-setting`."""
    try:
        words = [*shlex.split(one_string), *settings]
    except ValueError as error:
        raise invalid_setting(f"--engine-args is {one_string!r}: {error}") from error
    parsed = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not key or not equals:
            raise invalid_setting(
                f"engine setting {word!r}: it must be key=value, such as max_model_len=2048"
            )
        parsed[key.lstrip("-")] = value
    return parsed


def parse_adapter(text: str) -> Adapter:
    """An adapter from "alias=name@version=source". Raises `invalid-setting`."""
    alias, _, rest = text.partition("=")
    name, _, source = rest.partition("=")
    if not (alias and name and source):
        raise invalid_setting(
            f"--adapter is {text!r}: it must be alias=name@version=SOURCE,"
            " such as support=support@3=/models/support-lora"
        )
    try:
        AdapterRef.parse(name)
    except BadAdapterRef as error:
        raise invalid_setting(f"--adapter is {text!r}: {error}") from error
    path = Path(source).expanduser()
    return Adapter(alias, name, str(path.resolve()) if path.is_dir() else source)


def adapters_of(model: str, asked: Iterable[str] | None) -> tuple[Adapter, ...]:
    """The adapters that are asked for; where nothing is said, those that come with the model.
    Raises `invalid-setting`."""
    if asked is not None:
        return tuple(parse_adapter(each) for each in asked)
    if model != DEFAULT_MODEL:
        return ()
    return tuple(replace(parse_adapter(each), comes_along=True) for each in DEFAULT_ADAPTERS)
