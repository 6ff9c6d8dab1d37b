"""Calls whose paths are MicroServing's methods."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.replica.calls.answers import events_of
from penstock.replica.engine_calls.methods import METHODS, OFF, PATH, EngineCalls, failure
from penstock.replica.microserving.service import MicroServing
from penstock.replica.microserving.values import (
    Committed,
    Found,
    KvAddress,
    KvRank,
    MicroServingError,
    MicroServingFigures,
    Prepared,
    Prompt,
    Sending,
    Sent,
    Tokenized,
)
from penstock.replica.values import Call, Chunk, Event, Failed, Finished, Head
from penstock.v1 import microserving_pb2 as pb
from tests.fakes.bridged import FakeEngine, two_chunks

_PROMPT = Prompt((1, 2, 3), "a@1", "digest", "salt")
_WIRED = pb.Prompt(token_ids=[1, 2, 3], adapter="a@1", adapter_digest="digest", tenant_salt="salt")
_ADDRESS = KvAddress("r/1", b"n", 0, 2, 16, "f", (KvRank("h", 7),))


class _Moving:
    """Remembers what it was asked; `fails` is raised by what moves."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.fails: MicroServingError | None = None
        self.hangs = False

    async def tokenize(self, call: Call) -> Tokenized:
        self.asked.append(call)
        return Tokenized(_PROMPT, 3, 16, (2**64 - 1,))

    async def prep_recv(self, prompt: Prompt, end: int, seq_id: str, ttl_ms: int) -> Prepared:
        self.asked.append((prompt, end, seq_id, ttl_ms))
        return Prepared(_ADDRESS, 0, 2)

    async def remote_send(self, sending: Sending) -> Sent:
        self.asked.append(sending)
        if self.fails:
            raise self.fails
        if self.hangs:
            await asyncio.Event().wait()
        return Sent(2, 200, 30, 1)

    async def commit(self, seq_id: str) -> Committed:
        return Committed(32, 16)

    async def release(self, seq_id: str) -> None:
        self.asked.append(seq_id)

    async def lookup(self, prompt: Prompt) -> Found:
        return Found(16, 16, 2**40)

    def figures(self) -> MicroServingFigures:
        return MicroServingFigures()


class _Engine(FakeEngine):
    def __init__(self, moving: MicroServing | None) -> None:
        super().__init__(two_chunks)
        self.microserving = moving


async def _asked(engine: FakeEngine, method: str, body: bytes) -> list[Event]:
    call = Call("r", PATH + method, body, "m")
    return [event async for event in events_of(EngineCalls(engine, "served").answer, call)]


async def _reply(moving: _Moving, method: str, message: Any) -> bytes:
    events = await _asked(_Engine(moving), method, message.SerializeToString())
    assert events[0] == Head(200, "application/protobuf"), events
    assert isinstance(events[-1], Finished)
    return b"".join(event.body for event in events if isinstance(event, Chunk))


async def _failed(moving: _Moving, method: str, body: bytes) -> Failed:
    (failed,) = await _asked(_Engine(moving), method, body)
    assert isinstance(failed, Failed)
    return failed


def _sending(**fields: Any) -> pb.RemoteSendRequest:
    address = pb.KvAddress(lease="r/1", nonce=b"n", blocks=2, ranks=[pb.KvRank(host="h", port=7)])
    told: dict[str, Any] = {"prompt": _WIRED, "kv_addr": address, "end": 3, "seq_id": "r/1"}
    return pb.RemoteSendRequest(**(told | fields))


async def test_requests_reach_the_engine_as_values_and_its_values_come_back() -> None:
    moving = _Moving()
    asked = pb.PrepRecvRequest(prompt=_WIRED, end=3, seq_id="r/1", ttl_ms=9)
    reply = pb.PrepRecvReply.FromString(await _reply(moving, "PrepRecv", asked))
    assert moving.asked == [(_PROMPT, 3, "r/1", 9)]
    assert reply.kv_addr.ranks[0].port == 7
    assert reply.kv_addr.nonce == b"n"
    told = await _reply(moving, "Tokenize", pb.TokenizeRequest())
    assert pb.TokenizeReply.FromString(told).block_hashes == [2**64 - 1]
    assert pb.TokenizeReply.FromString(told).prompt == _WIRED
    found = await _reply(moving, "Lookup", pb.LookupRequest(prompt=_WIRED))
    assert pb.LookupReply.FromString(found).free_blocks == 2**40
    done = await _reply(moving, "Commit", pb.CommitRequest(seq_id="r/1"))
    assert pb.CommitReply.FromString(done).cached_len == 32
    assert await _reply(moving, "Release", pb.ReleaseRequest(seq_id="r/1")) == b""


async def test_all_that_a_send_is_told_reaches_the_engine() -> None:
    moving = _Moving()
    sent = await _reply(moving, "RemoteSend", _sending(begin=1, priority=-3, tenant="t"))
    assert pb.RemoteSendReply.FromString(sent).moved_bytes == 200
    sending = moving.asked[0]
    assert (sending.begin, sending.end, sending.priority, sending.tenant) == (1, 3, -3, "t")
    assert sending.kv_addr.ranks == (KvRank("h", 7),)


async def test_a_send_ends_with_its_deadline() -> None:
    moving = _Moving()
    moving.hangs = True
    failed = await _failed(moving, "RemoteSend", _sending(deadline_ms=1).SerializeToString())
    assert (failed.status, failed.code) == (504, "deadline")


@pytest.mark.parametrize(
    "fields",
    [
        {"end": 4},
        {"end": 0},
        {"begin": 4},
        {"recv_rank": 1},
        {"seq_id": ""},
        {"seq_id": "\u00e4" * 65},
        {"prompt": pb.Prompt()},
        {"kv_addr": pb.KvAddress(lease="r/1")},
        {"kv_addr": pb.KvAddress(lease="r/1", ranks=[pb.KvRank(host="h", port=65536)])},
        {"kv_addr": pb.KvAddress(lease="r/1", ranks=[pb.KvRank(port=7)])},
        {"kv_addr": pb.KvAddress(lease="r/1", nonce=b"x" * 257, ranks=[pb.KvRank(host="h")])},
    ],
)
async def test_a_send_that_makes_no_sense_never_reaches_the_engine(fields: Any) -> None:
    moving = _Moving()
    failed = await _failed(moving, "RemoteSend", _sending(**fields).SerializeToString())
    assert (failed.status, failed.code, failed.fault) == (400, "bad_request", "client")
    assert moving.asked == []


async def test_a_failure_is_told_by_its_cause() -> None:
    moving = _Moving()
    moving.fails = MicroServingError("no_kv_capacity", "all is leased")
    failed = await _failed(moving, "RemoteSend", _sending().SerializeToString())
    assert failed == failure(moving.fails)
    assert (failed.status, failed.code, failed.message) == (409, "no_kv_capacity", "all is leased")
    assert failed.retryable


async def test_an_engine_that_moves_no_kv_says_so_and_answers_all_else() -> None:
    engine = _Engine(None)
    for method in (*METHODS, "StartGenerate", "Nonsense"):
        assert await _asked(engine, method, b"") == [OFF]
    call = Call("r", "/v1/completions", b"{}", "m")
    events = [event async for event in events_of(EngineCalls(engine, "served").answer, call)]
    assert isinstance(events[-1], Finished)


@given(method=st.sampled_from([*METHODS, "StartGenerate", "", "X"]), body=st.binary(max_size=80))
def test_any_body_is_answered_or_refused(method: str, body: bytes) -> None:
    async def end() -> Event:
        return (await _asked(_Engine(_Moving()), method, body))[-1]

    last = asyncio.run(end())
    assert isinstance(last, Finished) or (
        isinstance(last, Failed) and last.code in ("bad_request", "unsupported")
    )


async def test_start_generate_is_a_completion_of_the_prompts_ids() -> None:
    engine = _Engine(_Moving())
    asked = pb.StartGenerateRequest(prompt=_WIRED, begin=2, seq_id="r/1", params=b'{"top_k": 1}')
    asked.call.priority, asked.call.tenant = 5, "t"
    await _asked(engine, "StartGenerate", asked.SerializeToString())
    (call,) = engine.calls
    assert (call.path, call.model, call.adapter) == ("/v1/completions", "served", "a@1")
    assert (call.tenant_salt, call.priority, call.tenant) == ("salt", 5, "t")
    assert call.kv is not None
    assert (call.kv.seq_id, call.kv.begin) == ("r/1", 2)
    assert call.request_id
    body = _json_of(call)
    assert body["prompt"] == [1, 2, 3]
    assert (body["stream"], body["return_token_ids"], body["top_k"]) == (True, True, 1)


def _json_of(call: Call) -> dict[str, Any]:
    """The body that the engine was given."""
    told = json.loads(call.body)
    assert isinstance(told, dict)
    return told
