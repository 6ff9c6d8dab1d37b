"""Replicas that sleep or drain while KV moves between them. On the simulated engine."""

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
from tests.fakes.movers import Movers, mover, name, sending, words
from tests.fakes.replica_process import load_when, running_replica

pytestmark = pytest.mark.processes

_SLOW = ("--engine-arg", "kv_bytes_per_token=1000", "--engine-arg", "kv_bytes_per_second=40000")
_ARGUMENTS = ("--engine", "simulated", "--model", "m", "--microserving", "--sleep", "1", *_SLOW)


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[Movers]:
    """Two whose KV takes long to move."""
    with (
        running_replica(tmp_path / "one", *_ARGUMENTS) as one,
        running_replica(tmp_path / "two", *_ARGUMENTS) as two,
        mover(one) as sender,
        mover(two) as receiver,
    ):
        yield Movers(sender, receiver)


@contextmanager
def _moving(movers: Movers) -> Iterator[Any]:
    """A transfer that is under way, and is told to be broken after what the test does."""
    prompt = movers.receiver.tokenized(words()).prompt
    lease = movers.receiver.prepared(prompt, name(), ttl_ms=60_000)
    under_way = movers.sender.kv.RemoteSend.future(sending(prompt, lease), timeout=60)
    for end in (movers.sender, movers.receiver):
        load_when(end.calls, lambda load: load.transfers == 1)
    yield under_way
    with pytest.raises(grpc.RpcError) as caught:
        under_way.result()
    assert str(caught.value.details()).startswith(("transfer", "no_lease"))
    assert movers.sender.idle().transfers == 0


def _sleeps(calls: Any, deadline_ms: int) -> None:
    calls.Sleep(inference_pb2.SleepRequest(deadline_ms=deadline_ms), timeout=20)


def test_one_that_goes_to_sleep_ends_its_leases_and_whoever_writes_into_them(slow: Movers) -> None:
    with _moving(slow):
        _sleeps(slow.receiver.calls, 2000)
        assert slow.receiver.idle().leased_blocks == 0
    slow.receiver.calls.Wake(inference_pb2.WakeRequest(), timeout=20)
    prompt = slow.receiver.tokenized(words(20)).prompt
    lease = slow.receiver.prepared(prompt, name()).kv_addr
    assert lease.blocks > 0
    slow.receiver.kv.Release(pb.ReleaseRequest(seq_id=lease.lease), timeout=20)


def test_one_that_sends_does_not_sleep_before_it_has_sent(slow: Movers) -> None:
    with _moving(slow) as under_way:
        with pytest.raises(grpc.RpcError) as refused:
            _sleeps(slow.sender.calls, 100)
        assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        assert not under_way.done()
        slow.receiver.process.signal(signal.SIGTERM)


def test_one_that_ends_tells_whoever_writes_into_its_leases(slow: Movers) -> None:
    with _moving(slow):
        slow.receiver.process.signal(signal.SIGTERM)
    assert slow.receiver.process.ended(within=20).code == 0
