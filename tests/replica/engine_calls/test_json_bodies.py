"""MicroServing's messages as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.replica.engine_calls.json_bodies import REQUESTS, body_of, request_of
from penstock.replica.microserving.values import MicroServingError
from penstock.v1 import microserving_pb2 as pb

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=12,
)
_NAMES = ("prompt", "token_ids", "kv_addr", "seq_id", "end", "begin", "params", "body", "call")
_LIKELY = st.dictionaries(st.sampled_from(_NAMES), _JSON, max_size=5)
_PROMPTED = st.fixed_dictionaries({"prompt": st.fixed_dictionaries({"token_ids": _JSON})})


def _cause(name: str, body: bytes) -> str:
    """Why the body is refused; empty: it is not."""
    try:
        request_of(name, body)
    except MicroServingError as refused:
        return refused.cause if refused.message else "without a reason"
    return ""


@given(name=st.sampled_from(sorted(REQUESTS)), told=_JSON | _LIKELY | _PROMPTED)
def test_any_json_is_read_or_refused_with_a_reason(name: str, told: Any) -> None:
    assert _cause(name, json.dumps(told).encode()) in ("", "bad_request")


@given(name=st.sampled_from(sorted(REQUESTS)), body=st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(name: str, body: bytes) -> None:
    assert _cause(name, body) in ("", "bad_request")


@given(ids=st.lists(st.integers(0, 2**32 - 1), max_size=40), nonce=st.binary(max_size=20))
def test_an_address_comes_back_from_json_as_it_was(ids: list[int], nonce: bytes) -> None:
    address = pb.KvAddress(lease="a/b", nonce=nonce, blocks=3, ranks=[pb.KvRank(host="h", port=9)])
    told = json.loads(body_of(pb.PrepRecvReply(kv_addr=address, matched_len=16)))
    sent = {"prompt": {"token_ids": ids}, "kv_addr": told["kv_addr"], "end": 64}
    request = request_of("remote_send", json.dumps(sent).encode())
    assert isinstance(request, pb.RemoteSendRequest)
    assert request.kv_addr == address
    assert list(request.prompt.token_ids) == ids


def test_a_tokenized_prompt_is_told_whole_and_taken_back_by_every_other_call() -> None:
    prompt = pb.Prompt(token_ids=[1, 2, 3], adapter="pirate@1", tenant_salt="s")
    told = json.loads(body_of(pb.TokenizeReply(prompt=prompt, length=3, block_hashes=[2**63])))
    assert told["prompt"]["token_ids"] == [1, 2, 3]
    assert told["block_hashes"] == [str(2**63)]
    for name in ("prep_recv", "remote_send", "start_generate", "lookup"):
        taken: Any = request_of(name, json.dumps({"prompt": told["prompt"]}).encode())
        assert taken.prompt == prompt


def test_what_is_tokenized_is_a_request_as_clients_send_it() -> None:
    body = {"messages": [{"role": "user", "content": "Hi"}]}
    request: Any = request_of("tokenize", json.dumps({"body": body, "adapter": "a@1"}).encode())
    assert request.call.path == "/v1/chat/completions"
    assert request.call.method == "POST"
    assert request.call.adapter == "a@1"
    assert json.loads(request.call.body) == body


@pytest.mark.parametrize(
    ("name", "told", "says"),
    [
        ("tokenize", {"path": "/v1/completions"}, "body must be a JSON object"),
        ("lookup", {"promt": {}}, 'no field named "promt"'),
        ("start_generate", {"params": []}, "params must be a JSON object"),
        ("lookup", {"prompt": {"token_ids": [2**32]}}, "array of token ids"),
        ("commit", [], "the body must be a JSON object"),
    ],
)
def test_a_refusal_says_what_is_wrong(name: str, told: Any, says: str) -> None:
    with pytest.raises(MicroServingError, match=says):
        request_of(name, json.dumps(told).encode())
