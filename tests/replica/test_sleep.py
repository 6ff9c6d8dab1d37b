"""A replica's sleep, and its wake, which is never trusted. On the simulated engine."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from penstock.v1 import inference_pb2
from penstock.v1 import microserving_pb2 as pb
from tests.fakes.replica_process import (
    ReplicaProcess,
    answer_of,
    chat_request,
    inference_stub,
    load_when,
    microserving_stub,
    running_replica,
    session,
)

pytestmark = pytest.mark.processes

_PIRATE = "pirate@1"
_ASLEEP = inference_pb2.REPLICA_STATE_ASLEEP


@contextmanager
def _sleepy(log: Path, *settings: str, level: int = 1) -> Iterator[tuple[ReplicaProcess, Any]]:
    words = [word for setting in settings for word in ("--engine-arg", setting)]
    words += ["--engine", "simulated", "--model", "penstock-mini", "--max-adapters", "2"]
    words += ["--sleep", str(level)]
    with (
        running_replica(log, *words, "--adapter", f"{_PIRATE}=pirate") as replica,
        inference_stub(replica.address) as stub,
    ):
        yield replica, stub


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Where a replica writes its stderr."""
    return tmp_path / "log"


def _sleep(stub: Any, deadline_ms: int = 2000) -> None:
    stub.Sleep(inference_pb2.SleepRequest(deadline_ms=deadline_ms), timeout=20)


def _wake(stub: Any, within: float = 20) -> int:
    return int(stub.Wake(inference_pb2.WakeRequest(), timeout=within).wakes)


def _asked(stub: Any, adapter: str = "") -> list[inference_pb2.CallEvent]:
    request = chat_request("Hello", temperature=0, max_tokens=12)
    request.adapter = adapter
    return list(stub.Call(request, timeout=20))


def _refusal(stub: Any) -> str:
    with pytest.raises(grpc.RpcError) as refused:
        _sleep(stub, 100)
    assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    return str(refused.value.details())


def test_one_that_sleeps_takes_no_calls_and_answers_as_before_once_it_is_woken(log: Path) -> None:
    with _sleepy(log) as (_, stub):
        before = [answer_of(_asked(stub, adapter))[-200:] for adapter in ("", _PIRATE)]
        for cycle in (1, 2):
            _sleep(stub)
            _sleep(stub)  # it sleeps already
            load_when(stub, lambda load: load.state == _ASLEEP)
            (refused,) = _asked(stub)
            assert refused.failed.error.code == "asleep"
            assert not stub.Health(
                inference_pb2.HealthRequest(depth=inference_pb2.HEALTH_DEPTH_READY), timeout=5
            ).ok
            assert [_wake(stub), _wake(stub)] == [cycle, cycle]
            after = [answer_of(_asked(stub, adapter))[-200:] for adapter in ("", _PIRATE)]
            assert after == before


def test_adapters_are_not_changed_in_its_sleep_and_are_loaded_anew_after_it(log: Path) -> None:
    with _sleepy(log) as (replica, stub):
        _sleep(stub)
        asked = inference_pb2.AdaptersRequest(unload=_PIRATE)
        with pytest.raises(grpc.RpcError, match="it changes no adapters until it is woken"):
            stub.Adapters(asked, timeout=5)
        _wake(stub)
        assert replica.log().count("adapter loaded") == 2


def test_one_that_holds_a_lease_sleeps_without_it_and_drains_with_it(log: Path) -> None:
    words = ("--engine", "simulated", "--model", "m", "--sleep", "1", "--microserving")
    with (
        running_replica(log, *words) as replica,
        inference_stub(replica.address) as stub,
        microserving_stub(replica.address) as kv,
    ):
        call = chat_request("How do trains find their way? " * 40)
        prompt = kv.Tokenize(pb.TokenizeRequest(call=call), timeout=10).prompt

        def free() -> int:
            return int(kv.Lookup(pb.LookupRequest(prompt=prompt), timeout=10).free_blocks)

        def leased(seq_id: str) -> None:
            end = len(prompt.token_ids)
            asked = pb.PrepRecvRequest(prompt=prompt, end=end, seq_id=seq_id, ttl_ms=60_000)
            kv.PrepRecv(asked, timeout=10)

        at_first = free()
        leased("a")
        assert free() < at_first
        _sleep(stub)
        _wake(stub)
        assert free() == at_first
        leased("b")
        replica.signal(signal.SIGTERM)
        assert replica.ended(within=20).code == 0


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("base", "the model answers otherwise than before the sleep"),
        ("adapter", f"the adapter {_PIRATE} answers otherwise than before the sleep"),
    ],
)
def test_one_that_wakes_wrongly_ends_before_anybody_gets_an_answer(
    log: Path, wrong: str, told: str
) -> None:
    with _sleepy(log, f"wakes_wrong={wrong}") as (replica, stub):
        _sleep(stub)
        with pytest.raises(grpc.RpcError):
            _wake(stub)
        end = replica.ended(within=20)
        assert end.code == 75
        assert end.last_line == f"penstock-replica: error: woke wrongly: {told}"


def test_one_that_does_not_wake_stays_asleep_and_alive_for_its_agent_to_end(log: Path) -> None:
    with _sleepy(log, "wakes_wrong=slow") as (replica, stub):
        _sleep(stub)
        with pytest.raises(grpc.RpcError, match="DEADLINE_EXCEEDED"):
            _wake(stub, within=0.3)
        assert stub.Health(inference_pb2.HealthRequest(), timeout=5).state == _ASLEEP
        assert replica.process.poll() is None


def test_a_process_sleeps_only_so_often(log: Path) -> None:
    with _sleepy(log, "sleep_cycles=1") as (_, stub):
        _sleep(stub)
        _wake(stub)
        assert "it was woken 1 times (sleep_cycles)" in _refusal(stub)
        assert _asked(stub)[-1].HasField("finished")  # until its agent ends it


def test_one_that_may_not_sleep_says_so_and_serves_on(log: Path) -> None:
    with _sleepy(log, level=0) as (_, stub):
        assert "sleep off" in _refusal(stub)
        assert _asked(stub)[-1].HasField("finished")


def test_one_whose_calls_do_not_end_in_time_does_not_sleep_and_lets_them_go_on(log: Path) -> None:
    with _sleepy(log, "tokens_per_second=20") as (_, stub), session(stub) as client:
        client.start(chat_request("Hello", stream=True, max_tokens=40))
        client.read_frame()
        assert "1 calls still run" in _refusal(stub)
        (refused,) = _asked(stub)
        assert refused.failed.error.code == "draining"
        client.read_until_ended(1)
        assert client.events[1][-1].HasField("finished")
