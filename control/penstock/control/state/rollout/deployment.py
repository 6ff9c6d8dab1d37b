"""What is wanted: a deployment's spec, and what tells it and its versions from others.

The uid tells namesakes apart: it is made with the deployment and never used again. The generation
grows with each change of the spec. The template digest says what replicas are made of: equal
digests, equal replicas.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import NewType

from penstock.adapters.adapter import BaseModelFamily
from penstock.adapters.lora_config import LARGEST_RANK
from penstock.control.declared.fields import PAIRS, check, inner, said, setting
from penstock.control.errors import InvalidSpec
from penstock.control.state.providers.settings import MANAGED, START_LIMIT_MS, calls_tools
from penstock.control.state.routing.degrading import Degrading
from penstock.control.state.routing.limits import MAX_COUNT, Limits, Sharing
from penstock.control.state.tenancy.prices import Prices, provider_prices
from penstock.control.state.tenancy.spend import Budgets

DeploymentName = NewType("DeploymentName", str)

ENGINES = ("vllm", "simulated", *MANAGED)
MAX_REPLICAS = 1000
MOST_ADAPTERS = 512
USUAL_ADAPTERS = 4
"""Slots of an engine that was told a rank for adapters, and not how many."""
USUAL_RANK = 16
"""The largest rank of an engine that was told how many adapters, and not how large."""

_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")
_LATER = ("max_adapters", "max_adapter_rank")
_SETTING = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,127}")


@dataclass(frozen=True, slots=True)
class AdapterBinding:
    """An adapter as documents of older heads have it in a deployment, until it is registered."""

    alias: str  # "pirate"
    adapter: str  # "pirate@1"
    source: str  # directory, or a name that the replica ships


@dataclass(frozen=True, slots=True)
class Template:
    """What a replica is made of: changing any of it takes new replicas."""

    engine: str = field(
        metadata=said(
            "what answers; bedrock, openai and canned without a model on the node", choices=ENGINES
        )
    )
    model: str = field(
        metadata=said(
            "path, Hugging Face id, a name that the replica ships, or the provider's id",
            examples=("penstock-mini",),
        )
    )
    engine_args: tuple[tuple[str, str], ...] = setting(
        "the engine's own settings, without dashes in front; never a secret: where it"
        " is, such as api_key_env or api_key_file",
        (),
        form=PAIRS,
        examples=({"max_model_len": "2048"},),
    )
    max_adapters: int = setting(
        "{unit} that an engine holds at once; 0: none, or a few by their rank",
        0,
        ge=0,
        le=MOST_ADAPTERS,
        unit="adapters",
    )
    max_adapter_rank: int = setting(
        "0: none, or the usual one by max_adapters", 0, ge=0, le=LARGEST_RANK
    )

    @property
    def adapter_slots(self) -> int:
        """Adapters that a replica can hold at once: some as soon as either setting is made."""
        return self.max_adapters or (USUAL_ADAPTERS if self.max_adapter_rank else 0)

    @property
    def adapter_rank(self) -> int:
        """The largest rank of an adapter that a replica takes; 0 where it takes none."""
        return self.max_adapter_rank or (USUAL_RANK if self.max_adapters else 0)

    @property
    def is_managed(self) -> bool:
        """Whether a provider answers, or nothing but a text: no engine that could die."""
        return self.engine in MANAGED

    @property
    def calls_tools(self) -> bool:
        """Whether a request that brings tools may be sent to a replica."""
        return calls_tools(self.engine, self.engine_args)

    @property
    def family(self) -> BaseModelFamily:
        """Which adapters fit: those that were made for this model."""
        return BaseModelFamily(self.model)


@dataclass(frozen=True, slots=True)
class DeploymentSpec:
    """What an operator asks for. Raises InvalidSpec where it contradicts itself."""

    name: DeploymentName
    template: Template = field(metadata=said(inner=True))
    replicas: int = setting("", 1, ge=0, le=MAX_REPLICAS)
    limits: Limits = inner(Limits)
    sharing: Sharing = inner(Sharing)
    degrading: Degrading = inner(Degrading)
    budgets: Budgets = inner(Budgets)
    prices: Prices = inner(Prices)
    labels: tuple[tuple[str, str], ...] = setting(
        "for people and programs: Penstock gives them no meaning",
        (),
        form=PAIRS,
        most=100,
        examples=({"team": "search"},),
    )
    start_limit_ms: int = setting(
        "{unit} from a replica's start to ready, after which it is started anew; "
        "0: the node agent's default, and a minute where a provider answers",
        0,
        ge=0,
        le=MAX_COUNT,
        unit="milliseconds",
    )

    def __post_init__(self) -> None:
        check_name(self.name)
        _check_template(self.template)
        check(self.template, InvalidSpec)
        check(self, InvalidSpec)
        _check_canary(self)
        _check_fallbacks(self)

    @property
    def all_prices(self) -> Prices:
        """By which requests are reckoned, wherever that is said."""
        if not self.template.is_managed:
            return self.prices
        return self.prices.over(provider_prices(self.template.engine_args))

    @property
    def costs_money(self) -> bool:
        """Whether its requests do, for all that is known."""
        return self.template.is_managed or self.prices != Prices()

    @property
    def usual_start_limit_ms(self) -> int:
        """`start_limit_ms`, where nothing is said that of its engine; 0: the node agent's."""
        managed = START_LIMIT_MS if self.template.is_managed else 0
        return self.start_limit_ms or managed


@dataclass(frozen=True, slots=True)
class Deployment:
    """A spec with its identity and history."""

    spec: DeploymentSpec = field(metadata=said(inner=True))
    uid: str  # hex
    generation: int  # begins at 1, grows by one with each change
    template_digest: str  # what its replicas are made of
    template_generation: int  # the generation that last changed the template
    created_at: datetime
    updated_at: datetime
    trouble: str = ""  # why the last attempt at a replica came to nothing; empty once all is well
    tries: int = 0  # such attempts in a row
    load_ms: int = 0  # milliseconds that its last replica took to get ready; 0: not known
    model_generation: int = 0  # the generation that last changed the model
    bindings: tuple[AdapterBinding, ...] = ()  # of an older head, that are not registered yet


@dataclass(frozen=True, slots=True)
class Departed:
    """A deployment that is no more: whether replicas of it are drained, or left alone."""

    uid: str
    name: str
    collected: bool  # False: not ours to end, a take-over only stopped waiting for it
    serial: int = 0  # grows: the oldest are forgotten first


def created(spec: DeploymentSpec, now: datetime, *, uid: str) -> Deployment:
    """A deployment's first generation, under a uid that nothing else ever had."""
    digest = template_digest(spec.template)
    return Deployment(spec, uid, 1, digest, 1, created_at=now, updated_at=now)


def changed(deployment: Deployment, spec: DeploymentSpec, now: datetime) -> Deployment:
    """The next generation; the same one where the spec says nothing new."""
    if spec == deployment.spec:
        return deployment
    old = deployment.spec
    deployment = replace(
        deployment, spec=spec, generation=deployment.generation + 1, updated_at=now
    )
    if spec.template == old.template:  # its digest may be an older head's, who knew other fields
        return deployment
    return replace(
        deployment,
        template_digest=template_digest(spec.template),
        template_generation=deployment.generation,
        model_generation=(
            deployment.model_generation
            if spec.template.family == old.template.family
            else deployment.generation
        ),
        trouble="",
        tries=0,
        load_ms=0,
    )


def template_digest(template: Template) -> str:
    """SHA-256 over the canonical JSON of a template, hex. What came into it later counts only where
    it is set, and what has left it as empty, so that a new head takes no new replicas."""
    said = {key: value for key, value in asdict(template).items() if value or key not in _LATER}
    text = json.dumps({**said, "adapters": []}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidSpec(
            f"name is {name!r}: it must be 1 to 63 of a-z, 0-9, '-' and '.', "
            "beginning and ending with a letter or digit"
        )


def _check_canary(spec: DeploymentSpec) -> None:
    for each in spec.sharing.canary:
        check_name(each.deployment)
        if each.deployment == spec.name:
            raise InvalidSpec(f"canary names {spec.name!r} itself: name another deployment")


def _check_fallbacks(spec: DeploymentSpec) -> None:
    for name in spec.degrading.fallbacks:
        check_name(name)
        if name == spec.name:
            raise InvalidSpec(f"degrade falls back to {name!r} itself: name another deployment")


def _check_template(template: Template) -> None:
    if template.engine not in ENGINES:
        raise InvalidSpec(f"engine is {template.engine!r}: it must be one of {', '.join(ENGINES)}")
    if not template.model.strip() or not template.model.isprintable():
        raise InvalidSpec(
            f"model is {template.model!r}: name a path, a hub id, penstock-mini or penstock-embed"
        )
    for key, _ in template.engine_args:
        if not _SETTING.fullmatch(key):
            raise InvalidSpec(
                f"engine_args has the key {key!r}: name the setting without dashes in front, "
                "such as max_model_len"
            )
    if template.is_managed and (template.max_adapters or template.max_adapter_rank):
        raise InvalidSpec(
            f"the engine {template.engine} takes no adapters: leave out max_adapters and"
            " max_adapter_rank"
        )
