"""One request to a replica over real gRPC: its answer, its error, its silence."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from penstock.control.cluster_security import ClusterSecurity
from penstock.control.errors import Code, Unavailable
from penstock.control.outside.dialer import Dialer
from penstock.control.outside.replica_caller import GrpcReplicaCaller
from penstock.control.replica_tokens import callers_token
from penstock.control.state.fleet.replica import ReplicaAddress
from penstock.control.state.rollout.trial import Outcome, question_for, said_in
from penstock.control.state.tenancy.prices import Prices
from penstock.v1 import common_pb2, inference_pb2
from tests.fakes.control_errors import raises_code
from tests.fakes.fake_replica import FakeCall, FakeReplica, hang, refuse
from tests.fakes.ports import free_address

QUESTION = question_for("mini", ())


async def asked(address: str, *, seconds: float = 30, token: str = "") -> Outcome:
    caller = GrpcReplicaCaller(Dialer(ClusterSecurity(token=token)))
    within = timedelta(seconds=seconds)
    return await caller.ask(
        ReplicaAddress("r1", address),
        QUESTION,
        model="mini",
        request_id="test-1",
        within=within,
        prices=Prices(0.15, 2.0),
    )


async def dear(call: FakeCall) -> None:
    """An answer of which everything is told."""
    await call.send(b"data: [DONE]\n\n")
    finished = inference_pb2.Finished(
        usage=common_pb2.Usage(
            prompt_tokens=9, completion_tokens=4, cached_tokens=8, cost_nanousd=70
        ),
        finish_reasons=["length", "stop"],
        backend="openai",
        backend_version="2.1",
        model="gpt-4o-mini",
        model_version="fp_1",
        provider_request_id="req_1",
        ttft_us=11,
        total_us=22,
    )
    await call.write(inference_pb2.CallEvent(finished=finished))


async def test_an_answer_comes_back_whole_with_what_was_measured_here() -> None:
    async with FakeReplica() as replica:
        outcome = await asked(replica.address, token="cluster")
    (call,) = replica.calls
    assert (call.request.path, call.request.model) == ("/v1/chat/completions", "mini")
    assert (call.request.request_id, call.request.deadline_ms) == ("test-1", 30_000)
    assert call.request.body == QUESTION.body
    assert (call.request.input_price, call.request.output_price) == (150_000_000, 2_000_000_000)
    assert call.request.cached_price == 150_000_000
    assert replica.authorizations == [f"Bearer {callers_token('cluster', 'r1')}"]
    assert said_in(QUESTION.path, outcome.body).text == "Hello"
    assert (outcome.prompt_tokens, outcome.completion_tokens, outcome.backend) == (3, 2, "fake")
    assert 0 < outcome.ttft_us <= outcome.total_us


async def test_what_an_engine_tells_of_itself_is_taken() -> None:
    async with FakeReplica(script=dear) as replica:
        outcome = await asked(replica.address)
    assert outcome == Outcome(
        body=b"data: [DONE]\n\n",
        prompt_tokens=9,
        completion_tokens=4,
        cached_tokens=8,
        cost_nanousd=70,
        finish_reason="length",
        ttft_us=11,
        total_us=22,
        model="gpt-4o-mini",
        model_version="fp_1",
        backend="openai",
        backend_version="2.1",
        provider_request_id="req_1",
    )


async def test_an_error_is_told_with_its_status_and_words() -> None:
    async with FakeReplica(script=refuse(401, "invalid_api_key")) as replica:
        with raises_code(Code.REPLICA_FAILED) as caught:
            await asked(replica.address)
    said = f"the replica at {replica.address} answers 401 invalid_api_key: the replica said"
    assert str(caught.value).startswith(said)


async def test_a_replica_that_does_not_end_in_time_is_too_slow() -> None:
    async with FakeReplica(script=hang) as replica:
        with raises_code(Code.REPLICA_TOO_SLOW, match=r"did not end its answer within 0\.2 s"):
            await asked(replica.address, seconds=0.2)


async def test_an_answer_without_an_end_is_no_answer() -> None:
    async def stops(call: FakeCall) -> None:
        await call.send(b"data: {}\n\n")

    async with FakeReplica(script=stops) as replica:
        with pytest.raises(Unavailable, match="stopped in the middle"):
            await asked(replica.address)


async def test_nobody_at_the_address_is_said(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="could not be asked: UNAVAILABLE"):
        await asked(free_address())
