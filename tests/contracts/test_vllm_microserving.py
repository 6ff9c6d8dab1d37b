"""What of moving KV only real engines show: other answers, broken wires, and their blocks after it.

The engines are those of `test_microserving.py`; each test leaves them without a lease.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from penstock.replica.default_model import shipped
from penstock.v1 import inference_pb2
from penstock.v1 import microserving_pb2 as pb
from tests.fakes.kv_wire import Wire, through
from tests.fakes.movers import GREEDY, Mover, Movers, ids_of, name, sending, words
from tests.fakes.replica_process import answer_of, chat_request, load_when

pytestmark = [
    pytest.mark.processes,
    pytest.mark.parametrize(
        "movers", [pytest.param("vllm", marks=pytest.mark.vllm)], indirect=True
    ),
]
_MESSAGE = [{"role": "user", "content": "Name a colour, and why."}]


@pytest.fixture(autouse=True)
def _all_blocks_are_free_again(movers: Movers) -> Iterator[None]:
    """Before and after."""
    prompt = movers.sender.tokenized("Hello").prompt
    ends = (movers.sender, movers.receiver)
    for end in ends:
        load_when(end.calls, lambda load: load.resumes)  # what it asks itself first holds a block
        end.idle()
    before = [_free(end, prompt) for end in ends]
    yield
    for end in ends:
        end.idle()
    assert [_free(end, prompt) for end in ends] == before


def _free(at: Mover, prompt: pb.Prompt) -> int:
    return int(at.kv.Lookup(pb.LookupRequest(prompt=prompt), timeout=30).free_blocks)


def _said(at: Mover, request: inference_pb2.CallRequest) -> list[inference_pb2.CallEvent]:
    request.token_groups = True
    return list(at.calls.Call(request, timeout=60))


def _block_bytes(lease: pb.PrepRecvReply, sent: pb.RemoteSendReply) -> int:
    """Of one layer."""
    directory = shipped("penstock-mini")
    assert directory is not None
    layers = json.loads((directory / "config.json").read_text())["num_hidden_layers"]
    return int(sent.moved_bytes // (lease.kv_addr.blocks * layers))


def _wire(movers: Movers, **how: Any) -> tuple[str, pb.Prompt, pb.PrepRecvReply, Wire]:
    """A chat's text, its prompt, a lease for it, and a wire to that."""
    before, seq_id = words(), name()
    prompt = movers.receiver.tokenized(before).prompt
    lease = movers.receiver.prepared(prompt, seq_id)
    size = _block_bytes(lease, movers.sender.sent(prompt, lease))
    movers.receiver.kv.Release(pb.ReleaseRequest(seq_id=seq_id), timeout=30)
    text = words()
    prompt = movers.receiver.tokenized(text).prompt
    lease = movers.receiver.prepared(prompt, name(), ttl_ms=5000)
    rank = lease.kv_addr.ranks[0]
    return text, prompt, lease, Wire(rank.host, rank.port, size, **how)


def _hint(lease: pb.PrepRecvReply) -> inference_pb2.KvHint:
    return inference_pb2.KvHint(seq_id=lease.kv_addr.lease, begin=lease.end)


def test_bits_that_are_flipped_on_the_way_are_in_the_answer(movers: Movers) -> None:
    text, prompt, lease, wire = _wire(movers, flip=0x40)
    with through(lease, wire) as bent:
        assert movers.sender.sent(prompt, bent).moved_tokens == lease.end
    answer = movers.receiver.chat(text, _hint(lease))
    assert answer[0].head.kv_moved_tokens == lease.end
    assert ids_of(answer) != ids_of(movers.sender.chat(text))


def test_nothing_but_the_wire_makes_that_difference(movers: Movers) -> None:
    text, prompt, lease, wire = _wire(movers)
    with through(lease, wire) as bent:
        movers.sender.sent(prompt, bent)
    answer = movers.receiver.chat(text, _hint(lease))
    assert answer[0].head.kv_moved_tokens == lease.end
    assert ids_of(answer) == ids_of(movers.sender.chat(text))


def test_a_wire_that_is_cut_costs_what_has_not_come_whole(movers: Movers) -> None:
    text, prompt, lease, wire = _wire(movers, frames=3)
    with through(lease, wire) as bent, pytest.raises(grpc.RpcError) as caught:
        movers.sender.sent(prompt, bent)
    assert caught.value.code() == grpc.StatusCode.UNAVAILABLE
    answer = movers.receiver.chat(text, _hint(lease))
    assert answer[0].head.kv_moved_tokens < lease.end
    assert ids_of(answer) == ids_of(movers.sender.chat(text))


def test_a_wire_that_stands_still_holds_nobody(movers: Movers) -> None:
    text, prompt, lease, wire = _wire(movers, frames=3, stands=True)
    with through(lease, wire) as bent:
        asked = sending(prompt, bent)
        asked.deadline_ms = 500
        with pytest.raises(grpc.RpcError) as caught:
            movers.sender.kv.RemoteSend(asked, timeout=30)
        assert caught.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
        movers.sender.idle()
        answer = movers.receiver.chat(text, _hint(lease))
    assert ids_of(answer) == ids_of(movers.sender.chat(text))


def test_a_sender_whose_caller_leaves_stops(movers: Movers) -> None:
    _, prompt, lease, wire = _wire(movers, frames=1, stands=True)
    with through(lease, wire) as bent:
        asked = movers.sender.kv.RemoteSend.future(sending(prompt, bent))
        while wire.passed == 0:
            pass
        asked.cancel()
        movers.sender.idle()
    movers.receiver.kv.Release(pb.ReleaseRequest(seq_id=lease.kv_addr.lease), timeout=30)


@pytest.mark.parametrize("sampling", [{"temperature": 0.8, "seed": 7}, {"temperature": 0}])
@pytest.mark.parametrize("adapter", ["", "pirate@1"])
def test_answers_with_adapters_and_seeds_are_the_same(
    movers: Movers, adapter: str, sampling: dict[str, Any]
) -> None:
    request = chat_request(words(), **{**GREEDY, **sampling})
    request.adapter = adapter
    told = movers.receiver.kv.Tokenize(pb.TokenizeRequest(call=request), timeout=30)
    assert bool(told.prompt.adapter_digest) == bool(adapter)
    lease = movers.receiver.prepared(told.prompt, name())
    assert movers.sender.sent(told.prompt, lease).moved_tokens == lease.end
    moved = inference_pb2.CallRequest()
    moved.CopyFrom(request)
    moved.kv.CopyFrom(_hint(lease))
    answer = _said(movers.receiver, moved)
    assert answer[0].head.kv_moved_tokens == lease.end
    assert ids_of(answer) == ids_of(_said(movers.sender, request))


def test_kv_of_an_adapter_is_found_by_nobody_else(movers: Movers) -> None:
    request = chat_request(words(), **GREEDY)
    request.adapter = "pirate@1"
    prompt = movers.receiver.kv.Tokenize(pb.TokenizeRequest(call=request), timeout=30).prompt
    lease = movers.receiver.prepared(prompt, name())
    other = pb.Prompt(token_ids=prompt.token_ids)
    with pytest.raises(grpc.RpcError, match="fingerprint"):
        movers.sender.sent(other, lease)
    movers.sender.sent(prompt, lease)
    movers.receiver.kv.Commit(pb.CommitRequest(seq_id=lease.kv_addr.lease), timeout=30)
    assert movers.receiver.found(prompt) == lease.end
    assert movers.receiver.found(other) == 0
    movers.receiver.kv.Release(pb.ReleaseRequest(seq_id=lease.kv_addr.lease), timeout=30)


def test_an_address_whose_first_block_was_changed_brings_no_block_to_a_wrong_place(
    movers: Movers,
) -> None:
    prompt = movers.receiver.tokenized(words()).prompt
    lease = movers.receiver.prepared(prompt, name())
    bent = pb.PrepRecvReply()
    bent.CopyFrom(lease)
    bent.kv_addr.first_block += 1
    bent.kv_addr.blocks -= 1
    with pytest.raises(grpc.RpcError, match="no_lease"):
        movers.sender.sent(prompt, bent)
    movers.receiver.kv.Release(pb.ReleaseRequest(seq_id=lease.kv_addr.lease), timeout=30)
    assert movers.receiver.found(prompt) == 0


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", {"messages": _MESSAGE, "max_tokens": 4}),
        ("/v1/completions", {"prompt": "Once upon a time", "max_tokens": 4}),
        ("/v1/responses", {"input": "Name a colour.", "max_output_tokens": 16}),
        ("/v1/messages", {"messages": _MESSAGE, "max_tokens": 4, "stream": True}),
    ],
)
@pytest.mark.parametrize("budget", [0, 20])
def test_a_prompt_has_the_tokens_that_its_answer_counts(
    movers: Movers, path: str, body: dict[str, Any], budget: int
) -> None:
    if budget and "messages" in body:
        body = {**body, "messages": [*_MESSAGE, {"role": "assistant", "content": "No."}] * 9}
        body["messages"] = [*body["messages"], *_MESSAGE]
    whole = {"model": "any", "temperature": 0, **body}
    request = inference_pb2.CallRequest(
        request_id=name(), method="POST", path=path, body=json.dumps(whole).encode(), model="m"
    )
    if budget and "messages" in body:
        request.trim, request.max_prompt_tokens = True, 80
    told = movers.receiver.kv.Tokenize(pb.TokenizeRequest(call=request), timeout=30)
    answer = _said(movers.receiver, request)
    assert answer[-1].HasField("finished"), answer[-1]
    assert told.length == answer[0].head.prompt_tokens == len(told.prompt.token_ids)
    if path == "/v1/chat/completions":
        again = movers.receiver.generated(told.prompt)
        assert answer_of(again)
        assert ids_of(again)[:4] == ids_of(answer)


def test_calls_of_several_prompts_are_not_moved(movers: Movers) -> None:
    body = json.dumps({"prompt": ["one", "two"], "max_tokens": 2}).encode()
    request = inference_pb2.CallRequest(
        request_id=name(), method="POST", path="/v1/completions", body=body, model="m"
    )
    with pytest.raises(grpc.RpcError, match="unsupported"):
        movers.receiver.kv.Tokenize(pb.TokenizeRequest(call=request), timeout=30)
