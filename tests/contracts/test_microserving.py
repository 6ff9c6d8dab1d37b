"""What every engine that moves KV does, seen through the MicroServing service of real replicas."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import grpc
import pytest

from penstock.v1 import inference_pb2
from penstock.v1 import microserving_pb2 as pb
from tests.fakes.movers import Mover, Movers, ids_of, name, sending, told_ids, words
from tests.fakes.replica_process import answer_of, load_when, session

pytestmark = pytest.mark.processes


def _refused(call: Callable[[], object]) -> tuple[grpc.StatusCode, str]:
    """The status of a call that has to fail, and its cause."""
    with pytest.raises(grpc.RpcError) as caught:
        call()
    details = str(caught.value.details())
    return caught.value.code(), details.partition(":")[0]


_NOT_HERE = grpc.StatusCode.FAILED_PRECONDITION


def test_a_prompt_is_told_by_the_models_own_tokens(movers: Movers) -> None:
    text = words(300)
    told = movers.sender.tokenized(text)
    assert told.length == len(told.prompt.token_ids) > 300
    assert len(told.block_hashes) == told.length // told.block_size
    assert told == movers.receiver.tokenized(text)
    longer = movers.sender.tokenized(text + " and so on")
    assert list(longer.block_hashes)[: len(told.block_hashes) - 1] == list(told.block_hashes)[:-1]


def test_moved_kv_is_found_where_it_went(movers: Movers) -> None:
    seq_id = name()
    prompt, sent = movers.move(words(), seq_id)
    assert sent.moved_tokens > 0
    assert sent.moved_bytes > 0
    done = movers.receiver.kv.Commit(pb.CommitRequest(seq_id=seq_id), timeout=30)
    assert done.cached_len - done.matched_len == sent.moved_tokens
    movers.receiver.kv.Release(pb.ReleaseRequest(seq_id=seq_id), timeout=30)
    assert movers.receiver.found(prompt) == done.cached_len
    assert movers.receiver.idle().leased_blocks == 0


def test_the_answer_is_the_same_token_for_token_and_what_moved_counts_as_cached_nowhere(
    movers: Movers,
) -> None:
    text, seq_id = words(), name()
    _, sent = movers.move(text, seq_id)
    plain = movers.sender.chat(words())
    assert plain[0].head.kv_moved_tokens == 0
    moved = movers.receiver.chat(text, inference_pb2.KvHint(seq_id=seq_id))
    head, usage = moved[0].head, moved[-1].finished.usage
    assert 0 < head.kv_moved_tokens <= sent.moved_tokens
    assert head.cached_tokens == usage.cached_tokens == 0
    told = json.loads(answer_of(moved))["usage"].get("prompt_tokens_details") or {}
    assert not told.get("cached_tokens")
    assert ids_of(moved) == ids_of(movers.sender.chat(text))


def test_what_was_cached_before_is_counted_and_not_moved_again(movers: Movers) -> None:
    text = words(200)
    movers.receiver.chat(text)
    seq_id, longer = name(), text + " " + words(200)
    prompt = movers.receiver.tokenized(longer).prompt
    here = movers.receiver.found(prompt)
    assert here > 0
    lease = movers.receiver.prepared(prompt, seq_id)
    assert lease.matched_len == here
    assert movers.sender.sent(prompt, lease).moved_tokens == lease.end - here
    head = movers.receiver.chat(longer, inference_pb2.KvHint(seq_id=seq_id))[0].head
    assert head.cached_tokens == here
    assert head.kv_moved_tokens > 0


def test_a_prompt_of_ids_is_generated_from_as_the_chat_is(movers: Movers) -> None:
    text, seq_id = words(), name()
    prompt, _ = movers.move(text, seq_id)
    events = movers.receiver.generated(prompt, seq_id)
    assert events[0].head.kv_moved_tokens > 0
    assert told_ids(events) == ids_of(events) == ids_of(movers.sender.chat(text))


def test_a_lease_ends_when_its_request_begins(movers: Movers) -> None:
    text, seq_id = words(), name()
    movers.move(text, seq_id)
    movers.receiver.chat(text, inference_pb2.KvHint(seq_id=seq_id))
    assert _refused(lambda: _commit(movers.receiver, seq_id)) == (_NOT_HERE, "no_lease")
    assert movers.receiver.idle().leased_blocks == 0


def test_a_call_whose_lease_is_not_there_is_computed(movers: Movers) -> None:
    text = words()
    head = inference_pb2.KvHint(seq_id=name(), begin=64, moved_tokens=64)
    events = movers.receiver.chat(text, head)
    assert events[0].head.kv_moved_tokens == 0
    assert ids_of(events) == ids_of(movers.sender.chat(text))


def test_what_a_migration_moved_before_is_told_by_the_hint(movers: Movers) -> None:
    text, seq_id = words(), name()
    _, sent = movers.move(text, seq_id)
    _commit(movers.receiver, seq_id)
    movers.receiver.kv.Release(pb.ReleaseRequest(seq_id=seq_id), timeout=30)
    events = movers.receiver.chat(text, inference_pb2.KvHint(moved_tokens=sent.moved_tokens))
    assert events[0].head.kv_moved_tokens > 0
    assert events[0].head.cached_tokens == 0
    again = movers.receiver.chat(text)
    assert again[0].head.cached_tokens > 0


def test_what_came_by_a_send_that_broke_was_not_cached_before_its_call(movers: Movers) -> None:
    text, seq_id = words(), name()
    prompt = movers.receiver.tokenized(text).prompt
    lease = movers.receiver.prepared(prompt, seq_id)
    half = sending(prompt, lease)
    half.end = lease.end // 2
    sent = movers.sender.kv.RemoteSend(half, timeout=30)
    movers.receiver.kv.Release(pb.ReleaseRequest(seq_id=seq_id), timeout=30)
    events = movers.receiver.chat(text, inference_pb2.KvHint(seq_id=seq_id))
    assert events[0].head.cached_tokens == 0
    assert events[0].head.kv_moved_tokens == sent.moved_tokens > 0
    assert ids_of(events) == ids_of(movers.sender.chat(text))


def test_a_lease_that_is_asked_for_again_is_the_same_one(movers: Movers) -> None:
    prompt, seq_id = movers.receiver.tokenized(words()).prompt, name()
    first = movers.receiver.prepared(prompt, seq_id)
    assert movers.receiver.prepared(prompt, seq_id) == first
    other = movers.receiver.tokenized(words()).prompt
    refused = _refused(lambda: movers.receiver.prepared(other, seq_id))
    assert refused == (grpc.StatusCode.INVALID_ARGUMENT, "bad_request")
    movers.receiver.kv.Release(pb.ReleaseRequest(seq_id=seq_id), timeout=30)


def test_a_lease_ends_by_itself_when_nothing_comes(movers: Movers) -> None:
    prompt, seq_id = movers.receiver.tokenized(words()).prompt, name()
    lease = movers.receiver.prepared(prompt, seq_id, ttl_ms=500)
    load_when(movers.receiver.calls, lambda load: load.leased_blocks == lease.kv_addr.blocks)
    assert movers.receiver.idle().leased_blocks == 0
    assert _refused(lambda: _commit(movers.receiver, seq_id)) == (_NOT_HERE, "no_lease")


def test_no_more_is_leased_than_a_share_of_the_pool(movers: Movers) -> None:
    prompts = [movers.receiver.tokenized(words()).prompt for _ in range(12)]
    leased = {name(): prompt for prompt in prompts}

    def lease_all() -> None:
        for seq_id, prompt in leased.items():
            movers.receiver.prepared(prompt, seq_id)

    assert _refused(lease_all) == (_NOT_HERE, "no_kv_capacity")
    for seq_id in leased:
        movers.receiver.kv.Release(pb.ReleaseRequest(seq_id=seq_id), timeout=30)
    assert movers.receiver.idle().leased_blocks == 0


@pytest.mark.parametrize(
    ("field", "value", "cause"),
    [("nonce", b"guessed", "no_lease"), ("fingerprint", "other", "fingerprint")],
)
def test_a_sender_that_was_not_meant_moves_nothing(
    movers: Movers, field: str, value: Any, cause: str
) -> None:
    prompt, seq_id = movers.receiver.tokenized(words()).prompt, name()
    lease = movers.receiver.prepared(prompt, seq_id)
    wrong = sending(prompt, lease)
    setattr(wrong.kv_addr, field, value)
    assert _refused(lambda: movers.sender.kv.RemoteSend(wrong, timeout=30)) == (_NOT_HERE, cause)
    assert _commit(movers.receiver, seq_id).cached_len == lease.matched_len
    movers.receiver.kv.Release(pb.ReleaseRequest(seq_id=seq_id), timeout=30)


def test_a_lease_that_was_committed_takes_no_more(movers: Movers) -> None:
    prompt, seq_id = movers.receiver.tokenized(words()).prompt, name()
    lease = movers.receiver.prepared(prompt, seq_id)
    _commit(movers.receiver, seq_id)
    assert _refused(lambda: movers.sender.sent(prompt, lease)) == (_NOT_HERE, "no_lease")
    movers.receiver.kv.Release(pb.ReleaseRequest(seq_id=seq_id), timeout=30)


def test_requests_that_make_no_sense_are_refused(movers: Movers) -> None:
    prompt, kv = movers.receiver.tokenized(words()).prompt, movers.receiver.kv
    too_far = pb.PrepRecvRequest(prompt=prompt, end=len(prompt.token_ids) + 1, seq_id=name())
    nameless = pb.PrepRecvRequest(prompt=prompt, end=64)
    long_named = pb.PrepRecvRequest(prompt=prompt, end=64, seq_id="x" * 129)
    empty = pb.PrepRecvRequest(end=1, seq_id=name())
    for request in (too_far, nameless, long_named, empty):
        refused = _refused(lambda request=request: kv.PrepRecv(request, timeout=30))  # type: ignore[misc]
        assert refused == (grpc.StatusCode.INVALID_ARGUMENT, "bad_request")
    pictured = pb.Prompt(token_ids=prompt.token_ids, mm_hashes=["a"])
    asked = pb.PrepRecvRequest(prompt=pictured, end=64, seq_id=name())
    assert _refused(lambda: kv.PrepRecv(asked, timeout=30)) == (_NOT_HERE, "unsupported")


def test_params_paramnothing_that_the_request_tells_itself(movers: Movers) -> None:
    prompt = movers.receiver.tokenized("Hello").prompt
    for param in ("prompt", "stream", "kv_transfer_params", "nonsense"):
        asked = pb.StartGenerateRequest(prompt=prompt, params=json.dumps({param: 1}).encode())
        (failed,) = movers.receiver.kv.StartGenerate(asked, timeout=30)
        assert failed.failed.error.code == "bad_request"
        assert param in failed.failed.error.message


def test_ending_a_lease_that_is_not_there_succeeds(movers: Movers) -> None:
    movers.receiver.kv.Release(pb.ReleaseRequest(seq_id=name()), timeout=30)


def test_gateways_ask_the_same_over_their_sessions(movers: Movers) -> None:
    prompt = movers.receiver.tokenized(words()).prompt
    with session(movers.receiver.calls) as gateway:
        gateway.start(
            _on_session("Lookup", pb.LookupRequest(prompt=prompt)),
            _on_session("Commit", pb.CommitRequest(seq_id=name())),
            _on_session("Release", pb.ReleaseRequest(seq_id=name())),
        )
        gateway.read_until_ended(1, 2, 3)
    assert gateway.events[1][0].head.content_type == "application/protobuf"
    assert pb.LookupReply.FromString(gateway.body(1)).free_blocks > 0
    error = gateway.events[2][-1].failed.error
    assert (error.code, error.status) == ("no_lease", 409)
    assert gateway.events[3][-1].HasField("finished")
    assert gateway.body(3) == b""


def test_what_moved_is_told_in_the_metrics(movers: Movers) -> None:
    movers.move(words(), name())
    told = movers.receiver.calls.Metrics(inference_pb2.MetricsRequest(), timeout=30).text
    assert 'penstock_replica_microserving_bytes_total{direction="in"} ' in told
    assert "penstock_replica_microserving_leases " in told


def _commit(at: Mover, seq_id: str) -> pb.CommitReply:
    reply = at.kv.Commit(pb.CommitRequest(seq_id=seq_id), timeout=30)
    assert isinstance(reply, pb.CommitReply)
    return reply


def _on_session(method: str, message: Any) -> inference_pb2.CallRequest:
    return inference_pb2.CallRequest(
        request_id="gw",
        method="POST",
        path=f"/penstock.v1.MicroServing/{method}",
        body=message.SerializeToString(),
    )
