"""Single requests to replicas, over gRPC: what a gateway does thousands of times, done once."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import grpc
import grpc.aio

from penstock.control.declared.messages import value_of
from penstock.control.errors import Code, PenstockError, Unavailable
from penstock.control.outside.dialer import Dialer
from penstock.control.state.fleet.replica import ReplicaAddress
from penstock.control.state.rollout.trial import Outcome, Question
from penstock.control.state.tenancy.prices import Prices
from penstock.control.state.tenancy.spend import NANO
from penstock.v1 import common_pb2, inference_pb2, inference_pb2_grpc

MICROSECONDS = 1_000_000
USAGE = ("prompt_tokens", "completion_tokens", "cached_tokens", "cost_nanousd")


class GrpcReplicaCaller:
    """A `ReplicaCaller`. Each call dials anew: it is asked for by hand."""

    def __init__(self, dialer: Dialer) -> None:
        self._dialer = dialer

    async def ask(
        self,
        replica: ReplicaAddress,
        question: Question,
        *,
        model: str,
        request_id: str,
        within: timedelta,
        prices: Prices,
    ) -> Outcome:
        """The whole answer. Raises `replica-failed`, `replica-too-slow` and `Unavailable`."""
        request = inference_pb2.CallRequest(
            request_id=request_id,
            method="POST",
            path=question.path,
            body=question.body,
            model=model,
            deadline_ms=int(within.total_seconds() * 1000),
            input_price=round(prices.usd_per_million_input * NANO),
            output_price=round(prices.usd_per_million_output * NANO),
            cached_price=round(prices.cached * NANO),
        )
        try:
            async with self._dialer.plain_channel(replica.address) as channel:
                stub = inference_pb2_grpc.InferenceStub(channel)  # type: ignore[no-untyped-call]
                call = stub.Call(
                    request, timeout=within.total_seconds(), metadata=self._dialer.shown_to(replica)
                )
                return await _outcome(call, replica.address)
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                raise PenstockError(
                    f"the replica at {replica.address} did not end its answer within"
                    f" {within.total_seconds():g} s; its log says how far it came",
                    Code.REPLICA_TOO_SLOW,
                ) from None
            raise Unavailable(
                f"the replica at {replica.address} could not be asked: {error.code().name}"
                f" {error.details()}"
            ) from None


async def _outcome(
    call: grpc.aio.UnaryStreamCall[inference_pb2.CallRequest, inference_pb2.CallEvent],
    address: str,
) -> Outcome:
    clock = asyncio.get_running_loop().time
    began, first, body = clock(), 0.0, bytearray()
    async for event in call:
        if event.chunk.body:
            first = first or clock() - began
            body += event.chunk.body
        if event.HasField("failed"):
            raise PenstockError(_told(event.failed.error, address), Code.REPLICA_FAILED)
        if event.HasField("finished"):
            return _finished(event.finished, bytes(body), first, clock() - began)
    raise Unavailable(f"the replica at {address} stopped in the middle of its answer")


def _finished(finished: inference_pb2.Finished, body: bytes, first: float, total: float) -> Outcome:
    """With our own stopwatch where an engine has told no times."""
    usage = {name: getattr(finished.usage, name) for name in USAGE}
    return value_of(
        Outcome,
        finished,
        **usage,
        body=body,
        finish_reason=next(iter(finished.finish_reasons), ""),
        ttft_us=finished.ttft_us or int(first * MICROSECONDS),
        total_us=finished.total_us or int(total * MICROSECONDS),
    )


def _told(error: common_pb2.ErrorDetail, address: str) -> str:
    code = f" {error.code}" if error.code else ""
    return f"the replica at {address} answers {error.status}{code}: {error.message}"
