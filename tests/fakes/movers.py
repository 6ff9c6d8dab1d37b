"""Two replicas that move KV, and what tests ask of them."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from penstock.v1 import inference_pb2
from penstock.v1 import microserving_pb2 as pb
from tests.fakes.replica_process import (
    ReplicaProcess,
    answer_of,
    chat_request,
    inference_stub,
    load_when,
    microserving_stub,
    sse_objects,
)

GREEDY: dict[str, Any] = {"temperature": 0, "max_tokens": 12, "ignore_eos": True}

_numbers = itertools.count(1)


def words(count: int = 300) -> str:
    """A text that no other has begun with."""
    own = next(_numbers)
    return f"Number {own} tells: " + " ".join(f"item{own}x{place}" for place in range(count))


def name() -> str:
    """Of a lease; no other has it."""
    return f"req_{next(_numbers)}/kv"


@dataclass(frozen=True, slots=True)
class Mover:
    """A client of one of them."""

    process: ReplicaProcess
    calls: Any
    kv: Any

    def tokenized(self, text: str) -> pb.TokenizeReply:
        """The prompt of a chat of one message."""
        reply = self.kv.Tokenize(pb.TokenizeRequest(call=chat_request(text, **GREEDY)), timeout=30)
        assert isinstance(reply, pb.TokenizeReply)
        return reply

    def found(self, prompt: pb.Prompt) -> int:
        """Tokens of the prompt whose KV is there."""
        return int(self.kv.Lookup(pb.LookupRequest(prompt=prompt), timeout=30).matched_len)

    def prepared(self, prompt: pb.Prompt, seq_id: str, ttl_ms: int = 0) -> pb.PrepRecvReply:
        """A lease for all of the prompt."""
        end = len(prompt.token_ids)
        asked = pb.PrepRecvRequest(prompt=prompt, end=end, seq_id=seq_id, ttl_ms=ttl_ms)
        reply = self.kv.PrepRecv(asked, timeout=30)
        assert isinstance(reply, pb.PrepRecvReply)
        return reply

    def sent(self, prompt: pb.Prompt, to: pb.PrepRecvReply) -> pb.RemoteSendReply:
        """Moves into a lease all that it is for."""
        reply = self.kv.RemoteSend(sending(prompt, to), timeout=30)
        assert isinstance(reply, pb.RemoteSendReply)
        return reply

    def chat(
        self, text: str, kv: inference_pb2.KvHint | None = None
    ) -> list[inference_pb2.CallEvent]:
        """A greedy chat, as a gateway sends it."""
        request = chat_request(text, **GREEDY)
        request.token_groups = True
        if kv is not None:
            request.kv.CopyFrom(kv)
        return list(self.calls.Call(request, timeout=30))

    def generated(self, prompt: pb.Prompt, seq_id: str = "") -> list[inference_pb2.CallEvent]:
        """The same by StartGenerate."""
        asked = pb.StartGenerateRequest(
            prompt=prompt, seq_id=seq_id, params=json.dumps(GREEDY).encode()
        )
        return list(self.kv.StartGenerate(asked, timeout=30))

    def idle(self) -> inference_pb2.Load:
        """Its load, once nothing is leased, moves or runs."""
        return load_when(self.calls, _is_idle)


def _is_idle(load: inference_pb2.Load) -> bool:
    return not (load.leased_blocks or load.transfers or load.kv_blocks_used)


def sending(prompt: pb.Prompt, to: pb.PrepRecvReply) -> pb.RemoteSendRequest:
    """All that a lease is for."""
    return pb.RemoteSendRequest(
        prompt=prompt,
        kv_addr=to.kv_addr,
        begin=to.matched_len,
        end=to.end,
        seq_id=to.kv_addr.lease,
    )


@dataclass(frozen=True, slots=True)
class Movers:
    """Both; of one model."""

    sender: Mover
    receiver: Mover

    def move(self, text: str, seq_id: str) -> tuple[pb.Prompt, pb.RemoteSendReply]:
        """Has the receiver lease, and the sender send, all of a chat's prompt."""
        prompt = self.receiver.tokenized(text).prompt
        lease = self.receiver.prepared(prompt, seq_id)
        return prompt, self.sender.sent(prompt, lease)


@contextlib.contextmanager
def mover(process: ReplicaProcess) -> Iterator[Mover]:
    """A client of a replica that moves KV."""
    with inference_stub(process.address) as calls, microserving_stub(process.address) as kv:
        yield Mover(process, calls, kv)


def ids_of(events: list[inference_pb2.CallEvent]) -> list[int]:
    """The tokens of an answer."""
    groups = (group for event in events for group in event.chunk.groups)
    return [token for group in groups for token in group.token_ids]


def told_ids(events: list[inference_pb2.CallEvent]) -> list[int]:
    """The tokens that an answer's own events tell."""
    choices = (choice for one in sse_objects(answer_of(events)) for choice in one["choices"])
    return [token for choice in choices for token in choice.get("token_ids") or ()]
