"""The command line of a replica."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from penstock.control.node_agent.replica_command import (
    ReplicaHome,
    has_provider_flags,
    provider_flags,
    replica_command,
    replica_environment,
)
from penstock.control.replica_tokens import replica_tokens
from penstock.v1 import inference_pb2, nodes_pb2

HOME = ReplicaHome("127.0.0.1:7000", "127.0.0.1")


def test_a_spec_becomes_the_command_that_runs_it() -> None:
    spec = nodes_pb2.ReplicaSpec(
        replica_id="r-1",
        deployment="mini",
        engine="simulated",
        model="penstock-mini",
        served_name="mini",
        engine_args=["ttft_ms=20", "tokens_per_second=50"],
        adapters=[inference_pb2.Adapter(name="pirate@1", source="penstock-mini/pirate")],
        max_ongoing=4,
    )
    command = replica_command(spec, ReplicaHome("127.0.0.1:7000", "127.0.0.1"))
    assert command[:3] == [sys.executable, "-m", "penstock.replica"]
    assert " ".join(command[3:]) == (
        "--replica-id r-1 --deployment mini --engine simulated --model penstock-mini"
        " --served-name mini --engine-arg ttft_ms=20 --engine-arg tokens_per_second=50"
        " --adapter pirate@1=penstock-mini/pirate --max-ongoing 4"
        " --listen 127.0.0.1:0 --agent 127.0.0.1:7000"
    )


def test_adapters_are_named_with_their_source_or_else_by_their_digest() -> None:
    spec = nodes_pb2.ReplicaSpec(
        replica_id="r-1",
        engine="vllm",
        adapters=[
            inference_pb2.Adapter(name="pirate@2", digest="ab" * 32),
            inference_pb2.Adapter(name="json@1", digest="cd" * 32, source="penstock-mini/json"),
        ],
        max_adapters=4,
        max_adapter_rank=16,
    )
    command = " ".join(replica_command(spec, ReplicaHome("127.0.0.1:7000", "127.0.0.1")))
    assert f" --adapter pirate@2=sha256:{'ab' * 32} " in command
    assert " --adapter json@1=penstock-mini/json " in command
    assert " --max-adapters 4 --max-adapter-rank 16 " in command


def test_what_a_spec_leaves_open_is_left_to_the_engine() -> None:
    spec = nodes_pb2.ReplicaSpec(replica_id="r", deployment="d", engine="vllm", model="m")
    command = replica_command(spec, ReplicaHome("h:1", "0.0.0.0"))
    assert not {"--max-ongoing", "--max-adapters", "--max-adapter-rank"} & set(command)
    assert command[command.index("--served-name") + 1] == "d"
    assert command[command.index("--listen") + 1] == "0.0.0.0:0"


def test_a_replica_listens_at_one_of_the_ports_that_its_node_gives() -> None:
    spec = nodes_pb2.ReplicaSpec(replica_id="r", deployment="d", engine="vllm", model="m")
    command = replica_command(spec, replace(HOME, ports="9000-9015"))
    assert command[command.index("--listen") + 1] == "127.0.0.1:9000-9015"


def test_a_replica_sees_the_devices_of_its_spec_and_no_others() -> None:
    spec = nodes_pb2.ReplicaSpec(replica_id="r", devices=["GPU-1", "GPU-2"])
    assert replica_environment(spec, HOME) == {"CUDA_VISIBLE_DEVICES": "GPU-1,GPU-2"}


def test_a_spec_without_devices_changes_nothing_of_the_environment() -> None:
    assert replica_environment(nodes_pb2.ReplicaSpec(replica_id="r"), HOME) == {}


def test_a_replica_gets_tokens_of_its_own_in_its_environment_and_not_the_clusters() -> None:
    spec = nodes_pb2.ReplicaSpec(replica_id="r", deployment="d", engine="vllm", model="m")
    home = replace(HOME, agent_id="agent-1", cluster_token="5ecre7")
    given = replica_environment(spec, home)
    assert given == replica_tokens("5ecre7", "agent-1", "r")
    shown = " ".join((*given.values(), *replica_command(spec, home), repr(home)))
    assert "5ecre7" not in shown
    assert not any(token in " ".join(replica_command(spec, home)) for token in given.values())


def test_leave_to_run_a_models_code_is_the_nodes_to_give() -> None:
    spec = nodes_pb2.ReplicaSpec(replica_id="r", deployment="d", engine="vllm", model="m")
    home = ReplicaHome("h:1", "127.0.0.1", allow_model_code=True)
    assert "--allow-model-code" in replica_command(spec, home)
    assert "--allow-model-code" not in replica_command(spec, ReplicaHome("h:1", "127.0.0.1"))


def test_where_keys_are_and_may_go_is_told_to_replicas_of_providers_alone() -> None:
    home = ReplicaHome(
        "h:1",
        "127.0.0.1",
        secrets_dir=Path("/data/secrets"),
        provider_hosts=("api.openai.com", "*.amazonaws.com"),
    )
    told = "--secrets-dir /data/secrets --provider-hosts api.openai.com,*.amazonaws.com"
    for engine in ("bedrock", "openai", "canned", "vllm", "simulated"):
        spec = nodes_pb2.ReplicaSpec(replica_id="r", deployment="d", engine=engine, model="m")
        managed = engine in ("bedrock", "openai", "canned")
        assert (told in " ".join(replica_command(spec, home))) == managed
    spec = nodes_pb2.ReplicaSpec(replica_id="r", deployment="d", engine="openai", model="m")
    flags = provider_flags(spec, home)
    assert has_provider_flags(replica_command(spec, home), flags)
    for other in (
        replace(home, provider_hosts=()),
        replace(home, provider_hosts=("api.openai.com",)),
        replace(home, secrets_dir=Path("/elsewhere")),
    ):
        assert not has_provider_flags(replica_command(spec, other), flags)
    anywhere = replica_command(spec, ReplicaHome("h:1", "127.0.0.1"))
    assert not {"--secrets-dir", "--provider-hosts"} & set(anywhere)


def test_a_replica_is_told_that_it_serves_microserving_and_by_what() -> None:
    spec = nodes_pb2.ReplicaSpec(replica_id="r-1", engine="vllm", microserving=True)
    assert "--microserving" in replica_command(spec, HOME)
    assert "--microserving-rest" not in replica_command(spec, HOME)
    spec.microserving_rest = True
    assert "--microserving-rest" in replica_command(spec, HOME)
    assert "--microserving" not in replica_command(nodes_pb2.ReplicaSpec(), HOME)
