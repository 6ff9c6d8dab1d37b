"""What a fake replica does that moves KV: MicroServing over its session, as scripts."""

from __future__ import annotations

import asyncio
from typing import Protocol

from penstock.v1 import common_pb2 as common
from penstock.v1 import inference_pb2 as inference
from penstock.v1 import microserving_pb2 as v1
from tests.fakes.fake_replica import FakeCall, Script, hello

PROMPT = 1000  # tokens of each
BLOCK = 16
PREFIX = "/penstock.v1.MicroServing/"


class _Message(Protocol):
    def SerializeToString(self) -> bytes: ...


async def answer(call: FakeCall, message: _Message) -> None:
    """Ends a call of MicroServing well."""
    body = message.SerializeToString()
    head = inference.Head(status=200, content_type="application/protobuf")
    chunk = inference.Chunk(body=body, events=1)
    done = inference.Finished(usage=common.Usage(), backend="fake")
    event = inference.CallEvent(call_id=call.call_id, head=head, chunk=chunk, finished=done)
    call.ended = True
    await call.write(event)


async def refuse_with(call: FakeCall, cause: str) -> None:
    """Ends it with a cause."""
    await call.fail(common.ErrorDetail(status=400, code=cause, message=f"{cause}: it is so"))


class MovingEngine:
    """A script of a replica; answers what is generated as `script` does."""

    def __init__(self, script: Script = hello) -> None:
        self.script = script
        self.leases: set[str] = set()
        self.sends = asyncio.Event()  # one has begun
        self.cancelled_sends = 0
        self.may_send = asyncio.Event()
        self.may_send.set()
        self.cause = ""  # with which all of it is refused

    async def __call__(self, call: FakeCall) -> None:
        """One call, of whatever kind."""
        method = call.request.path.removeprefix(PREFIX)
        if method == call.request.path:
            self.leases.discard(call.request.kv.seq_id)  # it is scheduled
            moved = call.request.kv.moved_tokens
            call.facts = inference.Head(kv_moved_tokens=moved, prompt_tokens=PROMPT)
            return await self.script(call)
        if self.cause:
            return await refuse_with(call, self.cause)
        handlers = {
            "Tokenize": self._tokenize,
            "PrepRecv": self._prepare,
            "RemoteSend": self._send,
            "Release": self._release,
            "Lookup": self._look_up,
            "Commit": self._commit,
        }
        await handlers[method](call)

    async def _tokenize(self, call: FakeCall) -> None:
        prompt = v1.Prompt(token_ids=range(PROMPT))
        await answer(call, v1.TokenizeReply(prompt=prompt, length=PROMPT, block_size=BLOCK))

    async def _prepare(self, call: FakeCall) -> None:
        asked = v1.PrepRecvRequest.FromString(call.request.body)
        self.leases.add(asked.seq_id)
        end = asked.end // BLOCK * BLOCK
        address = v1.KvAddress(lease=asked.seq_id, nonce=b"n", block_size=BLOCK)
        await answer(call, v1.PrepRecvReply(kv_addr=address, matched_len=0, end=end))

    async def _send(self, call: FakeCall) -> None:
        asked = v1.RemoteSendRequest.FromString(call.request.body)
        self.sends.set()
        try:
            await self.may_send.wait()
        except asyncio.CancelledError:
            self.cancelled_sends += 1
            raise
        moved = asked.end - asked.begin
        await answer(call, v1.RemoteSendReply(moved_tokens=moved, moved_bytes=moved * 1000))

    async def _release(self, call: FakeCall) -> None:
        self.leases.discard(v1.ReleaseRequest.FromString(call.request.body).seq_id)
        await answer(call, v1.ReleaseReply())

    async def _look_up(self, call: FakeCall) -> None:
        await answer(call, v1.LookupReply(matched_len=0, block_size=BLOCK, free_blocks=1000))

    async def _commit(self, call: FakeCall) -> None:
        await answer(call, v1.CommitReply(cached_len=PROMPT // BLOCK * BLOCK))
