"""The command line and the environment that run a replica. Pure."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from penstock.control.replica_tokens import replica_tokens
from penstock.control.state.providers.settings import MANAGED
from penstock.v1 import nodes_pb2

# What CUDA, and vLLM with it, takes for the accelerators of a process: uuids or numbers.
VISIBLE_DEVICES = "CUDA_VISIBLE_DEVICES"
SECRETS_DIR, PROVIDER_HOSTS = PROVIDER_FLAGS = ("--secrets-dir", "--provider-hosts")


@dataclass(frozen=True, slots=True)
class ReplicaHome:
    """Where the replicas of a node live."""

    agent: str  # host:port, where they register
    host: str  # the interface that they listen on
    agent_id: str = ""  # what tells the agent from all others
    # What their own tokens are derived from, which is not for them; empty: they get none.
    cluster_token: str = field(default="", repr=False)
    allow_model_code: bool = False  # their engine arguments may run code that comes with a model
    # Of those whose engine is a provider's: where keys lie, and where they may send them.
    secrets_dir: Path | None = None
    provider_hosts: tuple[str, ...] = ()  # empty: anywhere
    ports: str = "0"  # "first-last": one of these; "0": any free one
    # Of a replica and its deployment, where its spans go, as variables; nothing: nowhere.
    traces: Callable[[str, str], Mapping[str, str]] = lambda replica_id, deployment: {}


def replica_command(spec: nodes_pb2.ReplicaSpec, home: ReplicaHome) -> list[str]:
    """How to start the replica of a spec; it takes a free port and tells the agent which."""
    command = [sys.executable, "-m", "penstock.replica"]
    command += ["--replica-id", spec.replica_id, "--deployment", spec.deployment]
    command += ["--engine", spec.engine, "--model", spec.model]
    command += ["--served-name", spec.served_name or spec.deployment]
    for setting in spec.engine_args:
        command += ["--engine-arg", setting]
    for adapter in spec.adapters:
        command += ["--adapter", f"{adapter.name}={adapter.source or f'sha256:{adapter.digest}'}"]
    if spec.max_adapters:
        command += ["--max-adapters", str(spec.max_adapters)]
    if spec.max_adapter_rank:
        command += ["--max-adapter-rank", str(spec.max_adapter_rank)]
    if spec.sleep:
        command += ["--sleep", str(spec.sleep)]
    if spec.microserving:
        command += ["--microserving"]
    if spec.microserving_rest:
        command += ["--microserving-rest"]
    if spec.max_ongoing:
        command += ["--max-ongoing", str(spec.max_ongoing)]
    command += provider_flags(spec, home)
    if home.allow_model_code:
        command += ["--allow-model-code"]
    return [*command, "--listen", f"{home.host}:{home.ports}", "--agent", home.agent]


def provider_flags(spec: nodes_pb2.ReplicaSpec, home: ReplicaHome) -> tuple[str, ...]:
    """What lets a replica find its provider's keys, and keeps them from other hosts; nothing for
    one that has an engine."""
    if spec.engine not in MANAGED:
        return ()
    flags: tuple[str, ...] = ()
    if home.secrets_dir is not None:
        flags += (SECRETS_DIR, str(home.secrets_dir))
    if home.provider_hosts:
        flags += (PROVIDER_HOSTS, ",".join(home.provider_hosts))
    return flags


def has_provider_flags(argv: Sequence[str], flags: Sequence[str]) -> bool:
    """Whether a process of this command line has these flags of a provider's and no others."""
    words = list(itertools.pairwise(argv))
    had = [word for pair in words if pair[0] in PROVIDER_FLAGS for word in pair]
    return had == list(flags)


def replica_environment(spec: nodes_pb2.ReplicaSpec, home: ReplicaHome) -> Mapping[str, str]:
    """What is added to its environment: its own tokens, where its spans go, and it sees the
    devices of its spec alone."""
    devices = {VISIBLE_DEVICES: ",".join(spec.devices)} if spec.devices else {}
    tokens = replica_tokens(home.cluster_token, home.agent_id, spec.replica_id)
    return {**home.traces(spec.replica_id, spec.deployment), **tokens, **devices}
