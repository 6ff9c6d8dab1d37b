"""Calls whose paths are MicroServing's methods, answered by the engine's `microserving`.

They come as all calls do: over gateways' sessions with the serialised request as their body, and
from the native gRPC service, which makes such calls of its rpcs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from google.protobuf.message import DecodeError, Message

from penstock.replica.calls import wire as calls_wire
from penstock.replica.engine import Engine, Sink
from penstock.replica.engine_calls import wire
from penstock.replica.engine_calls.generating import completion_of
from penstock.replica.microserving.service import MicroServing
from penstock.replica.microserving.values import Cause, MicroServingError
from penstock.replica.values import Call, Failed, FailureFault, Finished, Head
from penstock.v1 import microserving_pb2 as pb

PATH: Final = "/penstock.v1.MicroServing/"
"""Begins the path of each."""

CONTENT_TYPE: Final = "application/protobuf"

_M = TypeVar("_M", bound=Message)


class EngineCalls:
    """Answers calls of this replica: those of MicroServing here, all others by the engine."""

    def __init__(self, engine: Engine, served_name: str) -> None:
        self._engine = engine
        self._served_name = served_name

    async def answer(self, call: Call, sink: Sink) -> None:
        """See `Engine.answer`."""
        if not call.path.startswith(PATH):
            return await self._engine.answer(call, sink)
        if self._engine.microserving is None:
            return sink.fail(OFF)
        try:
            await self._carry_out(call, self._engine.microserving, sink)
        except MicroServingError as error:
            sink.fail(failure(error))

    async def _carry_out(self, call: Call, serving: MicroServing, sink: Sink) -> None:
        name = call.path.removeprefix(PATH)
        if name == "StartGenerate":
            asked = _parsed(pb.StartGenerateRequest, call.body)
            return await self._engine.answer(completion_of(asked, self._served_name), sink)
        if (method := METHODS.get(name)) is None:
            raise MicroServingError("bad_request", f"MicroServing has no method {name[:80]!r}")
        reply = await method.work(serving, _parsed(method.request, call.body))
        sink.head(Head(200, CONTENT_TYPE))
        if body := reply.SerializeToString():
            sink.write(body)
        sink.finish(Finished(0, 0))


class Method(NamedTuple):
    """One of the unary methods."""

    request: type[Message]
    work: Callable[[MicroServing, Any], Awaitable[Message]]


async def _tokenize(serving: MicroServing, asked: pb.TokenizeRequest) -> Message:
    return wire.message_of(await serving.tokenize(calls_wire.call_of(asked.call)))


async def _prep_recv(serving: MicroServing, asked: pb.PrepRecvRequest) -> Message:
    prompt = wire.movable(asked.prompt)
    end = wire.end_of(asked.end, prompt)
    seq_id = wire.seq_id_of(asked.seq_id)
    return wire.message_of(await serving.prep_recv(prompt, end, seq_id, asked.ttl_ms))


async def _remote_send(serving: MicroServing, asked: pb.RemoteSendRequest) -> Message:
    sending = wire.sending_of(asked)
    try:
        async with asyncio.timeout(sending.deadline_ms / 1000 or None):
            return wire.message_of(await serving.remote_send(sending))
    except TimeoutError:
        late = f"not all had arrived within {sending.deadline_ms} ms"
        raise MicroServingError("deadline", late) from None


async def _commit(serving: MicroServing, asked: pb.CommitRequest) -> Message:
    return wire.message_of(await serving.commit(wire.seq_id_of(asked.seq_id)))


async def _release(serving: MicroServing, asked: pb.ReleaseRequest) -> Message:
    await serving.release(wire.seq_id_of(asked.seq_id))
    return pb.ReleaseReply()


async def _lookup(serving: MicroServing, asked: pb.LookupRequest) -> Message:
    return wire.message_of(await serving.lookup(wire.prompt_of(asked.prompt)))


METHODS: Final[Mapping[str, Method]] = {
    "Tokenize": Method(pb.TokenizeRequest, _tokenize),
    "PrepRecv": Method(pb.PrepRecvRequest, _prep_recv),
    "RemoteSend": Method(pb.RemoteSendRequest, _remote_send),
    "Commit": Method(pb.CommitRequest, _commit),
    "Release": Method(pb.ReleaseRequest, _release),
    "Lookup": Method(pb.LookupRequest, _lookup),
}


def _parsed(kind: type[_M], body: bytes) -> _M:
    try:
        return kind.FromString(body)
    except DecodeError:
        raise wire.refuse(f"the body is no {kind.DESCRIPTOR.name}") from None


_TOLD: Final[Mapping[Cause, tuple[int, FailureFault, bool]]] = {
    "bad_request": (400, "client", False),
    "unsupported": (409, "upstream", False),
    "fingerprint": (409, "upstream", False),
    "no_lease": (409, "upstream", False),
    "no_kv_capacity": (409, "upstream", True),
    "transfer": (503, "upstream", True),
    "deadline": (504, "upstream", False),
}
"""Of each cause: the status, whose fault it is, and whether another replica may do better."""


def failure(error: MicroServingError) -> Failed:
    """How a call ends that could not be done."""
    status, fault, retryable = _TOLD[error.cause]
    kind = "invalid_request_error" if fault == "client" else "server_error"
    return Failed(status, kind, error.cause, error.message, fault=fault, retryable=retryable)


OFF: Final = Failed(
    501,
    "server_error",
    "unsupported",
    "This replica serves no MicroServing: its deployment has microserving: off.",
)
"""How every such call ends where the engine moves no KV."""
