"""The replica process: how it starts, serves, drains and ends. On the simulated engine."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from penstock.v1 import common_pb2, inference_pb2
from tests.fakes.lora_adapters import random_adapter
from tests.fakes.ports import free_neighbours
from tests.fakes.replica_agent import ReplicaAgent, replica_agent
from tests.fakes.replica_process import (
    Ended,
    ReplicaProcess,
    answer_of,
    chat_request,
    inference_stub,
    load_when,
    running_replica,
    session,
    sse_objects,
)

pytestmark = pytest.mark.processes

_SIMULATED = ("--engine", "simulated", "--model", "m")


def _settings(*settings: str) -> tuple[str, ...]:
    return tuple(word for setting in settings for word in ("--engine-arg", setting))


def _end_of(log: Path, *arguments: str) -> Ended:
    replica = ReplicaProcess(log, *arguments)
    try:
        return replica.ended(within=20)
    finally:
        replica.close()


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where a replica writes its stderr."""
    return tmp_path / "log"


def test_sigterm_lets_running_calls_finish_and_exits_with_0(log: Path) -> None:
    slow = _settings("tokens_per_second=50")
    with (
        running_replica(log, *_SIMULATED, *slow) as replica,
        inference_stub(replica.address) as stub,
    ):
        with session(stub) as client:
            client.start(chat_request("Hello", stream=True, max_tokens=40))
            client.read_frame()
            replica.signal(signal.SIGTERM)
            client.read_until_ended(1)
            assert client.events[1][-1].HasField("finished")
            sse_objects(client.body(1))
        assert replica.ended(within=10).code == 0


def test_a_drain_that_takes_too_long_fails_what_is_left(log: Path) -> None:
    slow = (*_settings("tokens_per_second=1"), "--drain", "0.2")
    with (
        running_replica(log, *_SIMULATED, *slow) as replica,
        inference_stub(replica.address) as stub,
    ):
        with session(stub) as client:
            client.start(chat_request("Hello", stream=True, max_tokens=1000))
            client.read_frame()
            replica.signal(signal.SIGTERM)
            client.read_until_ended(1)
            assert client.events[1][-1].failed.error.code == "draining"
        assert replica.ended(within=10).code == 0


def test_an_engine_that_dies_fails_its_calls_and_ends_with_70(log: Path) -> None:
    faults = _settings("tokens_per_second=100", "die_after_tokens=5")
    with running_replica(log, *_SIMULATED, *faults) as replica:
        with inference_stub(replica.address) as stub, session(stub) as client:
            client.start(
                chat_request("Dies", "req_dies", stream=True, max_tokens=100),
                chat_request("Dies with it", "req_other", stream=True, max_tokens=3),
            )
            client.read_until_ended(1)
            error = client.events[1][-1].failed.error
            assert error.code == "engine_dead"
            assert error.retry == common_pb2.RETRY_NEVER, "it may be what killed the engine"
            assert client.body(1).count(b"data: ") == 6, "the role and five tokens"
        end = replica.ended(within=10)
        assert end.code == 70
        assert end.last_line.startswith("penstock-replica: error: the simulated engine died")
        assert "req_dies" in end.last_line


def test_an_engine_that_hangs_is_found_and_ends_with_71(log: Path) -> None:
    faults = (*_settings("hang_after_tokens=3", "engine_hung_after=0.5"), "--probe-every", "0.1")
    with running_replica(log, *_SIMULATED, *faults) as replica:
        with inference_stub(replica.address) as stub, session(stub) as client:
            client.start(chat_request("Hangs", stream=True, max_tokens=100))
            client.read_until_ended(1)
            assert client.events[1][-1].failed.error.code == "engine_hung"
        end = replica.ended(within=10)
        assert end.code == 71
        told = "penstock-replica: error: the engine made no progress and used no CPU for 0.5 s"
        assert end.last_line.startswith(told)


def test_a_hanging_engine_fails_deep_health_but_is_live(log: Path) -> None:
    faults = (*_settings("hang_after_tokens=1"), "--probe-every", "60")
    with (
        running_replica(log, *_SIMULATED, *faults) as replica,
        inference_stub(replica.address) as stub,
        session(stub) as client,
    ):
        client.start(chat_request("Hangs", stream=True, max_tokens=100))
        client.read_frame()
        deep = inference_pb2.HealthRequest(depth=inference_pb2.HEALTH_DEPTH_DEEP)
        reply = stub.Health(deep, timeout=20)
        assert not reply.ok
        assert "no answer within" in reply.detail
        assert stub.Health(inference_pb2.HealthRequest(), timeout=5).ok
        client.cancel(1)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (_settings("speed=5"), "'speed': it knows ttft_ms, tokens_per_second, answer_tokens"),
        (_settings("ttft_ms=soon"), "ttft_ms is 'soon'"),
        (_settings("refuse_share=2"), "refuse_share is '2': it must be a number from 0 to 1"),
        (_settings("ttft_ms"), "'ttft_ms' must be KEY=VALUE"),
        (_settings("ttft_ms=1", "ttft_ms=2"), "'ttft_ms' stands twice"),
        (("--adapter", "pirate=x"), "must be name@version"),
        (("--adapter", "pirate@1"), "must be NAME@VERSION=SOURCE"),
        (("--adapter", f"pirate@1=sha256:{'0' * 64}"), "comes from a node agent: set --agent"),
        (("--adapter", "pirate@1=sha256:0"), "followed by 64 hexadecimal digits"),
        (("--max-adapters", "-1"), "-1"),
        (("--max-adapter-rank", "513"), "513 is above 512, the largest rank"),
        (_settings("fail_adapter_loads=1", "adapter_load_ms=-1"), "adapter_load_ms is '-1'"),
        (("--no-such-flag",), "--no-such-flag"),
        (("--max-ongoing", "-1"), "-1"),
        (("--engine", "magic"), "magic"),
        (("--listen", "no-such-host.invalid:0"), "no-such-host.invalid:0"),
        (("--listen", "127.0.0.1:9-8"), "127.0.0.1:9-8"),
    ],
)
def test_wrong_settings_end_with_72_and_say_what_is_wrong(
    log: Path, arguments: tuple[str, ...], named: str
) -> None:
    end = _end_of(log, *_SIMULATED, *arguments)
    assert end.code == 72
    assert end.last_line.startswith("penstock-replica: error: ")
    assert named in end.last_line


def test_a_replica_serves_who_shows_its_callers_token_and_keeps_the_secret(
    log: Path, agent: ReplicaAgent
) -> None:
    env = {"PENSTOCK_CALLERS_TOKEN": "top-secret", "PENSTOCK_REPLICA_TOKEN": "r1:own-secret"}
    with (
        running_replica(log, *_SIMULATED, agent=agent, env=env) as replica,
        inference_stub(replica.address) as stub,
    ):
        request = inference_pb2.HealthRequest(depth=inference_pb2.HEALTH_DEPTH_READY)
        with pytest.raises(grpc.RpcError) as caught:
            stub.Health(request, timeout=10)
        assert caught.value.code() == grpc.StatusCode.UNAUTHENTICATED
        own = (("authorization", "Bearer top-secret"),)
        assert stub.Health(request, timeout=10, metadata=own).ok
    assert set(agent.shown) == {"Bearer r1:own-secret"}
    assert "secret" not in replica.log()


def test_a_taken_port_ends_with_72(log: Path, tmp_path: Path) -> None:
    with running_replica(log, *_SIMULATED) as replica:
        end = _end_of(tmp_path / "second", *_SIMULATED, "--listen", replica.address)
    assert end.code == 72
    assert replica.address in end.last_line


def test_a_range_of_ports_is_used_to_its_end_and_named_then(log: Path, tmp_path: Path) -> None:
    first = free_neighbours()
    at = (*_SIMULATED, "--listen", f"127.0.0.1:{first}-{first + 1}")
    with socket.create_server(("127.0.0.1", first)), running_replica(log, *at) as replica:
        assert replica.address == f"127.0.0.1:{first + 1}"
        end = _end_of(tmp_path / "second", *at)
    assert end.code == 72
    assert f"no port of {first}-{first + 1} is free on 127.0.0.1" in end.last_line
    assert "--replica-ports" in end.last_line


def test_without_its_agent_a_replica_ends_with_73(log: Path) -> None:
    end = _end_of(log, *_SIMULATED, "--agent", "127.0.0.1:1")
    assert end.code == 73
    assert end.last_line.startswith("penstock-replica: error: cannot register with the node agent")
    assert "127.0.0.1:1" in end.last_line


@pytest.fixture
def agent() -> Iterator[ReplicaAgent]:
    """A node agent that takes every replica."""
    with replica_agent() as agent:
        yield agent


def test_a_replica_registers_before_and_after_it_is_ready_and_outlives_its_agent(
    log: Path, agent: ReplicaAgent
) -> None:
    arguments = (*_SIMULATED, *_settings("max_running=7"), "--agent", agent.address)
    replica = ReplicaProcess(log, *arguments)
    try:
        first, second = agent.heard.get(timeout=20), agent.heard.get(timeout=20)
        assert (first.replica_id, first.pid) == ("r1", replica.process.pid)
        assert (first.max_model_len, first.capacity) == (0, 0)
        assert (second.address, second.pid) == (first.address, first.pid)
        assert (second.max_model_len, second.capacity) == (1 << 20, 7)
        agent.stop()
        with inference_stub(first.address) as stub:
            events = list(stub.Call(chat_request("Hello", max_tokens=2), timeout=10))
            assert events[-1].HasField("finished")
    finally:
        replica.close()
    assert replica.process.poll() == 0


def test_max_ongoing_is_told_as_the_capacity(log: Path, agent: ReplicaAgent) -> None:
    replica = ReplicaProcess(log, *_SIMULATED, "--max-ongoing", "3", "--agent", agent.address)
    try:
        assert agent.heard_when(lambda said: said.capacity).capacity == 3
    finally:
        replica.close()


def test_adapters_are_there_before_it_is_ready_and_what_is_missing_is_told(
    log: Path, agent: ReplicaAgent, tmp_path: Path
) -> None:
    digest = random_adapter(tmp_path / "content", 1)
    agent.offer("there@1", digest, tmp_path / "content")
    words = ("--adapter", f"there@1=sha256:{digest}", "--adapter", f"gone@1=sha256:{'0' * 64}")
    replica = ReplicaProcess(
        log, *_SIMULATED, *words, "--max-adapters", "3", "--agent", agent.address
    )
    try:
        said = agent.heard_when(lambda said: said.capacity)
        assert [(one.name, one.digest) for one in said.adapters] == [("there@1", digest)]
        (failed,) = said.failed_adapters
        assert (failed.name, failed.digest) == ("gone@1", "0" * 64)
        assert "nobody registered it" in failed.reason
        assert said.adapter_slots == 3
        agent.offer("gone@1", "0" * 64, tmp_path)
        agent.heard_when(lambda said: len(said.adapters) == 2 and not said.failed_adapters)
    finally:
        replica.close()


def test_a_call_waits_for_its_adapter_no_longer_than_the_time_limit(log: Path) -> None:
    slow = (*_settings("adapter_load_ms=60000"), "--adapter-load-timeout", "0.2")
    with (
        running_replica(log, *_SIMULATED, *slow, "--max-adapters", "1") as replica,
        inference_stub(replica.address) as stub,
    ):
        request = chat_request("Hello")
        request.adapter, request.adapter_digest = "a@1", "a" * 64
        (event,) = stub.Call(request, timeout=10)
        assert event.failed.error.code == "adapter_load_timeout"
        assert event.failed.error.retry == common_pb2.RETRY_BEFORE_FIRST_TOKEN


def test_a_request_may_bring_its_own_timing_where_the_deployment_allows_it(log: Path) -> None:
    slow = _settings("tokens_per_second=1", "per_request=1")
    with (
        running_replica(log, *_SIMULATED, *slow) as replica,
        inference_stub(replica.address) as stub,
    ):
        fast = {"tokens_per_second": 0, "answer_tokens": 30}
        events = list(stub.Call(chat_request("Hello", stream=True, simulate=fast), timeout=10))
        assert len(sse_objects(answer_of(events))) == 32
        assert list(events[-1].finished.finish_reasons) == ["stop"]


def test_calls_beyond_max_running_wait_and_are_counted(log: Path) -> None:
    narrow = _settings("tokens_per_second=200", "max_running=2")
    with (
        running_replica(log, *_SIMULATED, *narrow) as replica,
        inference_stub(replica.address) as stub,
        session(stub) as client,
    ):
        requests = [chat_request("x", f"r{i}", stream=True, max_tokens=150) for i in range(5)]
        client.start(*requests)
        load_when(stub, lambda load: (load.running, load.waiting) == (2, 3))
        client.read_until_ended(*range(1, 6))
        load_when(stub, lambda load: (load.running, load.waiting) == (0, 0))


def test_a_share_of_requests_is_refused_as_retryable(log: Path) -> None:
    with (
        running_replica(log, *_SIMULATED, *_settings("refuse_share=0.3")) as replica,
        inference_stub(replica.address) as stub,
        session(stub) as client,
    ):
        client.start(*(chat_request("x", f"req_{i}", max_tokens=1) for i in range(200)))
        client.read_until_ended(*range(1, 201))
    ends = [events[-1] for events in client.events.values()]
    errors = [end.failed.error for end in ends if end.HasField("failed")]
    assert 30 < len(errors) < 90
    assert {error.code for error in errors} == {"queue_full"}
    assert {error.retry for error in errors} == {common_pb2.RETRY_BEFORE_FIRST_TOKEN}


def test_one_step_of_the_engine_is_one_frame_for_all_calls(log: Path) -> None:
    paced = _settings("tokens_per_second=20")
    with (
        running_replica(log, *_SIMULATED, *paced) as replica,
        inference_stub(replica.address) as stub,
        session(stub) as client,
    ):
        requests = [chat_request("x", f"r{i}", stream=True, max_tokens=20) for i in range(64)]
        client.start(*requests)
        client.read_until_ended(*range(1, 65))
        # One frame a step and a few at the beginning; one frame a token would be 1,280.
        assert client.frames < 60


def test_logs_are_json_with_the_replicas_id_and_without_prompts(log: Path) -> None:
    with running_replica(log, *_SIMULATED, "--log-level", "debug") as replica:
        with inference_stub(replica.address) as stub:
            list(stub.Call(chat_request("a secret prompt"), timeout=10))
        replica.signal(signal.SIGTERM)
        replica.ended(within=10)
        lines = replica.log().splitlines()
    records = [json.loads(line) for line in lines]
    assert {record["replica_id"] for record in records} == {"r1"}
    assert "secret" not in replica.log()


def test_the_simulated_engine_needs_neither_torch_nor_vllm() -> None:
    program = (
        "import sys; from penstock.replica.main import make_engine; "
        "from penstock.replica.settings import parse_settings; "
        "from penstock.replica.calls.inbox import Inbox; "
        "s = parse_settings(['--replica-id', 'r', '--deployment', 'd', '--engine', 'simulated', "
        "'--model', 'm']); e = make_engine(s, Inbox()); e.native.stop(); "
        "print(sorted({m.split('.')[0] for m in sys.modules} & {'torch', 'vllm', 'numpy'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
