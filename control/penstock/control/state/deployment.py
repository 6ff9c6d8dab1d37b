"""What is wanted: a deployment's spec, and the revisions that changes to it make."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NewType

from penstock.adapters.adapter import AdapterRef, BadAdapterRef
from penstock.control.errors import InvalidSpec

DeploymentName = NewType("DeploymentName", str)

ENGINES = ("vllm", "simulated")
MAX_REPLICAS = 1000

_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")
_ALIAS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_SETTING = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,127}")


@dataclass(frozen=True, slots=True)
class AdapterBinding:
    """An adapter that a deployment offers: clients say "<deployment>:<alias>"."""

    alias: str  # "pirate"
    adapter: str  # immutable version, "pirate@1"
    source: str  # directory on the nodes, or a name that the replica ships


@dataclass(frozen=True, slots=True)
class Limits:
    """What the gateways hold a deployment to; changing one starts no replica. 0: no limit."""

    max_queued: int = 0  # requests waiting in one gateway
    queue_deadline_ms: int = 0  # milliseconds a request may wait for a replica
    first_event_deadline_ms: int = 0  # milliseconds from send to the first event


@dataclass(frozen=True, slots=True)
class Template:
    """What a replica is made of: changing any of it takes new replicas."""

    engine: str  # one of ENGINES
    model: str  # path, hub id, or a name that the replica ships
    engine_args: tuple[tuple[str, str], ...] = ()  # sorted by key
    adapters: tuple[AdapterBinding, ...] = ()
    max_ongoing: int = 0  # calls it may be sent at once; 0: the engine's default


@dataclass(frozen=True, slots=True)
class DeploymentSpec:
    """What an operator asks for. Raises InvalidSpec where it contradicts itself."""

    name: DeploymentName
    template: Template
    replicas: int = 1
    limits: Limits = field(default_factory=Limits)
    labels: tuple[tuple[str, str], ...] = ()  # sorted by key; Penstock gives them no meaning

    def __post_init__(self) -> None:
        _check_name(self.name)
        _check_template(self.template)
        if not 0 <= self.replicas <= MAX_REPLICAS:
            raise InvalidSpec(f"replicas is {self.replicas}: it must be 0 to {MAX_REPLICAS}")


@dataclass(frozen=True, slots=True)
class Deployment:
    """A spec with its history: revisions begin at 1 and grow by one with each change."""

    spec: DeploymentSpec
    revision: int
    template_revision: int  # the revision that last changed the template: what replicas run
    created_at: datetime
    updated_at: datetime
    trouble: str = ""  # why the last attempt at a replica came to nothing; empty once all is well


def created(spec: DeploymentSpec, now: datetime, *, revision: int = 1) -> Deployment:
    """A deployment's first revision, numbered above those of a namesake that was deleted."""
    return Deployment(spec, revision, revision, created_at=now, updated_at=now)


def changed(deployment: Deployment, spec: DeploymentSpec, now: datetime) -> Deployment:
    """The next revision; the same one where the spec says nothing new."""
    if spec == deployment.spec:
        return deployment
    revision = deployment.revision + 1
    same_template = spec.template == deployment.spec.template
    return replace(
        deployment,
        spec=spec,
        revision=revision,
        template_revision=deployment.template_revision if same_template else revision,
        updated_at=now,
        trouble=deployment.trouble if same_template else "",
    )


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidSpec(
            f"name is {name!r}: it must be 1 to 63 of a-z, 0-9, '-' and '.', "
            "beginning and ending with a letter or digit"
        )


def _check_template(template: Template) -> None:
    if template.engine not in ENGINES:
        raise InvalidSpec(f"engine is {template.engine!r}: it must be one of {', '.join(ENGINES)}")
    if not template.model.strip() or not template.model.isprintable():
        raise InvalidSpec(f"model is {template.model!r}: name a path, a hub id or penstock-mini")
    if template.max_ongoing < 0:
        raise InvalidSpec(f"max_ongoing is {template.max_ongoing}: it must be 0 or more")
    for key, _ in template.engine_args:
        if not _SETTING.fullmatch(key):
            raise InvalidSpec(
                f"engine_args has the key {key!r}: name the setting without dashes in front, "
                "such as max_model_len"
            )
    _check_adapters(template.adapters)


def _check_adapters(adapters: tuple[AdapterBinding, ...]) -> None:
    for binding in adapters:
        if not _ALIAS.fullmatch(binding.alias):
            raise InvalidSpec(f"adapter alias is {binding.alias!r}: use letters, digits, . _ -")
        try:
            AdapterRef.parse(binding.adapter)
        except BadAdapterRef as error:
            raise InvalidSpec(str(error)) from error
        if not binding.source:
            raise InvalidSpec(f"adapter {binding.adapter} has no source: name its directory")
    aliases = [binding.alias for binding in adapters]
    for alias in aliases:
        if aliases.count(alias) > 1:
            raise InvalidSpec(f"adapter alias {alias!r} stands twice: keep one")
