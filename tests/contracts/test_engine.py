"""What every engine does, seen through the Inference service of a real replica process.

The drain test stands last: the replica takes no calls after it.
"""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest

from penstock.v1 import common_pb2, inference_pb2
from tests.fakes.contract_engines import COMPLETING, LOCAL, SLOW
from tests.fakes.replica_process import (
    ReplicaProcess,
    answer_of,
    chat_request,
    load_when,
    raw_request,
    session,
    sse_objects,
)

pytestmark = pytest.mark.processes

_GREEDY: dict[str, Any] = {"temperature": 0, "max_tokens": 12, "ignore_eos": True}
_LONG: dict[str, Any] = {**_GREEDY, "max_tokens": 600, "stream": True}


def _text(objects: list[dict[str, Any]]) -> str:
    deltas = [choice["delta"] for one in objects for choice in one["choices"]]
    return "".join(delta.get("content") or "" for delta in deltas)


def _call(stub: Any, request: inference_pb2.CallRequest) -> list[inference_pb2.CallEvent]:
    return list(stub.Call(request, timeout=60))


def _failure(events: list[inference_pb2.CallEvent]) -> common_pb2.ErrorDetail:
    assert len(events) == 1, events
    assert events[0].HasField("failed"), events
    return events[0].failed.error


def test_a_streamed_chat_begins_with_the_role_and_ends_with_a_reason_and_done(stub: Any) -> None:
    events = _call(stub, chat_request("Hello there", stream=True, **_GREEDY))
    assert events[0].head.status == 200
    assert events[0].head.content_type.startswith("text/event-stream")
    objects = sse_objects(answer_of(events))
    assert objects[0]["choices"][0]["delta"]["role"] == "assistant"
    assert {one["object"] for one in objects} == {"chat.completion.chunk"}
    assert {one["model"] for one in objects} == {"test-model"}
    reasons = [one["choices"][0]["finish_reason"] for one in objects]
    assert reasons[-1] == "length"
    assert set(reasons[:-1]) == {None}


def test_the_number_of_events_is_told_beside_the_bytes(stub: Any) -> None:
    events = _call(stub, chat_request("Hello there", stream=True, **_GREEDY))
    told = sum(event.chunk.events for event in events)
    assert told == answer_of(events).count(b"data: ")


def test_a_unary_chat_is_one_json_body_with_true_usage(stub: Any) -> None:
    events = _call(stub, chat_request("Hello there", **_GREEDY))
    assert events[0].head.content_type == "application/json"
    body = json.loads(answer_of(events))
    assert body["object"] == "chat.completion"
    assert body["choices"][0]["finish_reason"] == "length"
    assert body["usage"]["completion_tokens"] == 12
    finished = events[-1].finished
    assert finished.usage.completion_tokens == 12
    assert finished.usage.prompt_tokens == body["usage"]["prompt_tokens"] > 0
    assert list(finished.finish_reasons) == ["length"]
    assert finished.backend in {"simulated", "vllm", "canned", "openai", "bedrock"}
    assert finished.backend_version
    assert finished.model_version == events[0].head.model_version != ""
    assert finished.model == events[0].head.model != ""


def test_the_end_says_whose_call_it_was_and_how_long_it_took(stub: Any) -> None:
    request = chat_request("Hello there", "req_7", stream=True, **_GREEDY)
    request.traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    finished = _call(stub, request)[-1].finished
    assert finished.request_id == "req_7"
    assert finished.trace_id == "0af7651916cd43dd8448eb211c80319c"
    assert 0 < finished.ttft_us <= finished.total_us < 60_000_000


def test_the_same_greedy_request_gets_the_same_words_streamed_and_unary(stub: Any) -> None:
    streamed = sse_objects(
        answer_of(_call(stub, chat_request("What is a gateway?", stream=True, **_GREEDY)))
    )
    unary = json.loads(answer_of(_call(stub, chat_request("What is a gateway?", **_GREEDY))))
    assert _text(streamed) == unary["choices"][0]["message"]["content"] != ""


@SLOW
def test_another_prompt_gets_other_words(stub: Any) -> None:
    texts = {
        json.loads(answer_of(_call(stub, chat_request(prompt, **_GREEDY))))["choices"][0][
            "message"
        ]["content"]
        for prompt in ("What is a gateway?", "Tell me about rivers.")
    }
    assert len(texts) == 2


@LOCAL
def test_an_adapter_changes_the_words_and_is_named_at_the_end(stub: Any) -> None:
    base = chat_request("What is a gateway?", **_GREEDY)
    pirate = chat_request("What is a gateway?", **_GREEDY)
    pirate.adapter = "pirate@1"
    plain, adapted = _call(stub, base), _call(stub, pirate)
    contents = [
        json.loads(answer_of(events))["choices"][0]["message"]["content"]
        for events in (plain, adapted)
    ]
    assert contents[0] != contents[1]
    assert plain[-1].finished.adapter == ""
    assert adapted[-1].finished.adapter == "pirate@1"


@LOCAL
def test_the_answer_names_the_model_as_the_client_wrote_it(stub: Any) -> None:
    request = chat_request("Hello", **_GREEDY)
    request.model = "test-model:pirate"
    request.adapter = "pirate@1"
    assert json.loads(answer_of(_call(stub, request)))["model"] == "test-model:pirate"


@COMPLETING
def test_a_completion_is_answered_in_its_own_format(stub: Any) -> None:
    body = {"model": "test-model", "prompt": "Once upon a time", **_GREEDY}
    request = raw_request(json.dumps(body).encode())
    request.path = "/v1/completions"
    answer = json.loads(answer_of(_call(stub, request)))
    assert answer["object"] == "text_completion"
    assert answer["choices"][0]["text"]
    assert answer["usage"]["completion_tokens"] == 12


@COMPLETING
def test_a_streamed_completion_carries_text(stub: Any) -> None:
    body = {"model": "test-model", "prompt": "Once upon a time", "stream": True, **_GREEDY}
    request = raw_request(json.dumps(body).encode())
    request.path = "/v1/completions"
    objects = sse_objects(answer_of(_call(stub, request)))
    assert "".join(one["choices"][0]["text"] for one in objects)
    assert objects[-1]["choices"][0]["finish_reason"] == "length"


def test_a_usage_chunk_comes_last_when_it_is_asked_for(stub: Any) -> None:
    options: dict[str, Any] = {"stream_options": {"include_usage": True}, "stream": True}
    *others, last = sse_objects(answer_of(_call(stub, chat_request("Hi", **options, **_GREEDY))))
    assert last["choices"] == []
    assert last["usage"]["completion_tokens"] == 12
    assert all(one.get("usage") is None for one in others)


def test_no_usage_comes_when_it_is_not_asked_for(stub: Any) -> None:
    objects = sse_objects(answer_of(_call(stub, chat_request("Hi", stream=True, **_GREEDY))))
    assert all(one["choices"] for one in objects)


@LOCAL
def test_token_groups_add_up_to_the_answer(stub: Any) -> None:
    request = chat_request("Hello there", stream=True, **_GREEDY)
    request.token_groups = True
    events = _call(stub, request)
    groups = [group for event in events for group in event.chunk.groups]
    assert sum(len(group.token_ids) for group in groups) == 12
    assert groups[-1].finish_reason == "length"
    assert {group.choice for group in groups} == {0}


def test_token_groups_stay_away_when_they_are_not_asked_for(stub: Any) -> None:
    events = _call(stub, chat_request("Hello there", stream=True, **_GREEDY))
    assert all(not event.chunk.groups for event in events)


@pytest.mark.parametrize(
    "body",
    [
        b"{nope",
        b"",
        b"[]",
        b'{"model": "test-model"}',
        b'{"model": "test-model", "messages": "hello"}',
        b'{"model": "test-model", "messages": [{"role": "user", "content": 7}]}',
        b'{"model": "test-model", "messages": [{"role": "user", "content": "x"}], '
        b'"max_tokens": "many"}',
        b'{"model": "test-model", "messages": [{"role": "user", "content": "x"}], '
        b'"max_tokens": -1}',
    ],
)
def test_a_bad_request_is_the_clients_fault(stub: Any, body: bytes) -> None:
    error = _failure(_call(stub, raw_request(body)))
    assert error.status == 400
    assert error.fault == common_pb2.FAULT_CLIENT
    assert error.retry == common_pb2.RETRY_NEVER
    assert error.message


def test_a_prompt_and_answer_beyond_the_context_are_refused(stub: Any) -> None:
    error = _failure(_call(stub, chat_request("Hello", max_tokens=100_000_000)))
    assert error.status == 400
    assert error.fault == common_pb2.FAULT_CLIENT
    assert "100000000" in error.message


def test_an_unknown_adapter_is_not_found(stub: Any) -> None:
    request = chat_request("Hello", **_GREEDY)
    request.adapter = "ghost@1"
    error = _failure(_call(stub, request))
    assert error.status == 404
    assert error.fault == common_pb2.FAULT_CLIENT
    assert "ghost@1" in error.message


def test_many_calls_share_a_session_and_all_finish(stub: Any) -> None:
    with session(stub) as client:
        requests = [chat_request(f"Story {i}", f"r{i}", stream=True, **_GREEDY) for i in range(32)]
        client.start(*requests)
        client.read_until_ended(*range(1, 33))
        for call_id in range(1, 33):
            assert client.events[call_id][-1].HasField("finished")
            sse_objects(client.body(call_id))


def test_a_session_that_is_half_closed_gets_its_running_calls_finished(stub: Any) -> None:
    with session(stub) as client:
        client.start(chat_request("Hello", stream=True, **_GREEDY))
        client.half_close()
        client.read_to_end()
        assert client.has_ended(1)


@SLOW
def test_a_cancel_frees_the_engine(stub: Any) -> None:
    with session(stub) as client:
        client.start(chat_request("A long story", stream=True, max_tokens=600, ignore_eos=True))
        client.read_frame()
        load_when(stub, lambda load: load.running == 1)
        client.cancel(1)
        load_when(stub, lambda load: load.running == 0)
        client.read_until_ended(1)
        assert client.events[1][-1].HasField("cancelled")


@SLOW
def test_a_client_that_vanishes_frees_the_engine(stub: Any) -> None:
    with session(stub) as client:
        client.start(*(chat_request("A long story", f"v{i}", **_LONG) for i in range(3)))
        client.read_frame()
        load_when(stub, lambda load: load.running == 3)
    load_when(stub, lambda load: load.running == 0)


def test_a_call_without_credit_is_held_while_others_flow(stub: Any) -> None:
    with session(stub) as client:
        client.start(chat_request("Held", "held", stream=True, **_GREEDY), credit=1)
        client.read_frame()
        held = client.body(1)
        assert 0 < held.count(b"data: ") < 12
        client.start(chat_request("Flows", "flows", stream=True, **_GREEDY), first_id=2)
        client.read_until_ended(2)
        assert client.body(1) == held
        client.grant(1, 1 << 20)
        client.read_until_ended(1)
        sse_objects(client.body(1))


@LOCAL
def test_a_ready_replica_says_so_and_what_it_has(stub: Any) -> None:
    load = load_when(stub, lambda load: load.state == inference_pb2.REPLICA_STATE_READY)
    assert load.max_running > 0
    assert list(load.adapters) == ["pirate@1"]
    assert load.adapter_slots == 2
    assert load.config_hash


def test_generated_tokens_are_counted(stub: Any) -> None:
    before = load_when(stub, lambda load: load.running == 0).tokens
    _call(stub, chat_request("Hello", **_GREEDY))
    load_when(stub, lambda load: load.tokens >= before + 12)


@pytest.mark.parametrize(
    "depth",
    [
        inference_pb2.HEALTH_DEPTH_LIVE,
        inference_pb2.HEALTH_DEPTH_READY,
        inference_pb2.HEALTH_DEPTH_DEEP,
    ],
)
def test_a_healthy_replica_is_healthy_at_every_depth(stub: Any, depth: Any) -> None:
    reply = stub.Health(inference_pb2.HealthRequest(depth=depth), timeout=20)
    assert reply.ok, reply
    assert reply.state == inference_pb2.REPLICA_STATE_READY
    assert (reply.latency_us > 0) == (depth == inference_pb2.HEALTH_DEPTH_DEEP)


@LOCAL
def test_an_adapter_can_be_unloaded_and_loaded_again(stub: Any) -> None:
    unload = inference_pb2.AdaptersRequest(unload="pirate@1")
    assert not stub.Adapters(unload, timeout=20).loaded
    adapter = inference_pb2.Adapter(name="pirate@1", source="penstock-mini/pirate")
    reply = stub.Adapters(inference_pb2.AdaptersRequest(load=adapter), timeout=20)
    assert [loaded.name for loaded in reply.loaded] == ["pirate@1"]
    request = chat_request("Hello", **_GREEDY)
    request.adapter = "pirate@1"
    assert _call(stub, request)[-1].HasField("finished")


@SLOW
def test_a_draining_replica_finishes_its_calls_takes_none_and_stops_cleanly(
    stub: Any, replica: ReplicaProcess
) -> None:
    with session(stub) as client:
        client.start(chat_request("A long story", **_LONG))
        client.read_frame()
        draining = stub.Drain.future(inference_pb2.DrainRequest(deadline_ms=60_000), timeout=70)
        load_when(stub, lambda load: load.state == inference_pb2.REPLICA_STATE_DRAINING)
        error = _failure(_call(stub, chat_request("Too late")))
        assert error.code == "draining"
        assert error.status == 503
        assert error.retry == common_pb2.RETRY_BEFORE_FIRST_TOKEN
        client.read_until_ended(1)
        assert client.events[1][-1].HasField("finished")
        assert draining.result().left == 0
    replica.signal(signal.SIGTERM)
    assert replica.ended(within=40).code == 0
