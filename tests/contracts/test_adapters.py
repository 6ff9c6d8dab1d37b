"""Adapters as every engine has them, seen through the Inference service of a real replica process.

The file's name stands before that of test_engine.py, which stops the replica.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

from penstock.v1 import common_pb2, inference_pb2
from tests.fakes.contract_engines import LOCAL
from tests.fakes.replica_agent import ReplicaAgent
from tests.fakes.replica_process import answer_of, chat_request, load_when, session

pytestmark = [pytest.mark.processes, LOCAL]

_GREEDY: dict[str, Any] = {"temperature": 0, "max_tokens": 12, "ignore_eos": True}
_PIRATE = inference_pb2.Adapter(name="pirate@1", source="penstock-mini/pirate")


@pytest.fixture
def long(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What takes an engine a second."""
    tokens = 200 if request.node.callspec.params["replica"] == "vllm" else 400
    return {**_GREEDY, "max_tokens": tokens, "stream": True}


@pytest.fixture(autouse=True)
def _as_it_began(stub: Any) -> Iterator[None]:
    """Afterwards the replica holds what it held at first, and is to hold nothing."""
    yield
    _ask(stub, keep=inference_pb2.KeepAdapters())
    load_when(stub, lambda load: load.running == 0)
    for adapter in _ask(stub, list=True).loaded:
        if adapter.name != "pirate@1":
            _ask(stub, unload=adapter.name)
    _ask(stub, load=_PIRATE)


def _ask(stub: Any, **action: Any) -> inference_pb2.AdaptersReply:
    reply: inference_pb2.AdaptersReply = stub.Adapters(
        inference_pb2.AdaptersRequest(**action), timeout=30
    )
    return reply


def _held(stub: Any) -> set[str]:
    return {adapter.name for adapter in _ask(stub, list=True).loaded}


def _request(agent: ReplicaAgent, name: str, **fields: Any) -> inference_pb2.CallRequest:
    request = chat_request("What is a gateway?", f"a-{name}", **{**_GREEDY, **fields})
    request.adapter = name
    request.adapter_digest = agent.digests.get(name, "")
    return request


def _call(stub: Any, request: inference_pb2.CallRequest) -> list[inference_pb2.CallEvent]:
    return list(stub.Call(request, timeout=60))


def _text(stub: Any, request: inference_pb2.CallRequest) -> str:
    events = _call(stub, request)
    assert events[-1].finished.adapter == request.adapter, events
    words: str = json.loads(answer_of(events))["choices"][0]["message"]["content"]
    return words


def _refusal(stub: Any, request: inference_pb2.CallRequest) -> common_pb2.ErrorDetail:
    (event,) = _call(stub, request)
    assert event.HasField("failed"), event
    return event.failed.error


def _is_for_another_replica(error: common_pb2.ErrorDetail) -> bool:
    return (error.status, error.type, error.fault, error.retry) == (
        503,
        "server_error",
        common_pb2.FAULT_UPSTREAM,
        common_pb2.RETRY_BEFORE_FIRST_TOKEN,
    )


def _wish(agent: ReplicaAgent, name: str, *, pinned: bool = False) -> inference_pb2.Adapter:
    return inference_pb2.Adapter(name=name, digest=agent.digests[name], pinned=pinned)


def test_an_adapter_is_loaded_on_the_call_that_tells_its_digest(
    stub: Any, agent: ReplicaAgent
) -> None:
    assert "one@1" not in _held(stub)
    one = _text(stub, _request(agent, "one@1"))
    loaded = {adapter.name: adapter.digest for adapter in _ask(stub, list=True).loaded}
    assert loaded["one@1"] == agent.digests["one@1"]
    plain = json.loads(answer_of(_call(stub, chat_request("What is a gateway?", **_GREEDY))))
    assert one not in ("", plain["choices"][0]["message"]["content"])
    load_when(stub, lambda load: "one@1" in load.adapters)
    agent.heard_when(lambda said: "one@1" in [adapter.name for adapter in said.adapters])


def test_each_adapter_has_its_own_words_and_the_same_after_it_was_away(
    stub: Any, agent: ReplicaAgent
) -> None:
    names = ("one@1", "two@1", "three@1")
    before = {name: _text(stub, _request(agent, name)) for name in names}
    assert len(set(before.values())) == 3
    assert {name: _text(stub, _request(agent, name)) for name in names} == before


@pytest.mark.parametrize("stream", [False, True])
def test_the_head_names_the_model_and_the_end_the_adapter(
    stub: Any, agent: ReplicaAgent, stream: bool
) -> None:
    events = _call(stub, _request(agent, "one@1", stream=stream))
    assert events[0].head.model_version == events[-1].finished.model_version != ""
    assert events[-1].finished.adapter == "one@1"


def test_the_least_recently_used_leaves_for_the_next(stub: Any, agent: ReplicaAgent) -> None:
    for name in ("one@1", "two@1", "one@1", "three@1"):
        _text(stub, _request(agent, name))
    assert _held(stub) == {"one@1", "three@1"}


def test_an_adapter_in_use_never_leaves(
    stub: Any, agent: ReplicaAgent, long: dict[str, Any]
) -> None:
    with session(stub) as client:
        client.start(_request(agent, "one@1", **long), credit=1)
        client.start(_request(agent, "two@1", **long), first_id=2, credit=1)
        while not all(client.body(call_id) for call_id in (1, 2)):
            client.read_frame()
        error = _refusal(stub, _request(agent, "three@1"))
        assert error.code == "adapter_slots_full"
        assert _is_for_another_replica(error)
        with pytest.raises(grpc.RpcError, match="in use"):
            _ask(stub, unload="one@1")
        assert _held(stub) == {"one@1", "two@1"}
        client.grant(1, 1 << 30)
        client.grant(2, 1 << 30)
        client.read_until_ended(1, 2)
        assert client.events[1][-1].finished.usage.completion_tokens == long["max_tokens"]
    assert _text(stub, _request(agent, "three@1"))


def test_a_call_that_may_wait_for_room_has_it_once_another_ends(
    stub: Any, agent: ReplicaAgent, long: dict[str, Any]
) -> None:
    with session(stub) as client:
        client.start(_request(agent, "one@1", **long), credit=1)
        client.start(_request(agent, "two@1", **long), first_id=2, credit=1)
        while not all(client.body(call_id) for call_id in (1, 2)):
            client.read_frame()
        patient = _request(agent, "three@1")
        patient.adapter_wait_ms = 60_000
        client.start(patient, first_id=3)
        assert _refusal(stub, _request(agent, "three@1")).code == "adapter_slots_full"
        client.grant(1, 1 << 30)
        client.read_until_ended(1, 3)
        assert client.events[3][-1].finished.adapter == "three@1"
        client.grant(2, 1 << 30)
        client.read_until_ended(2)
        assert client.events[2][-1].finished.usage.completion_tokens == long["max_tokens"]


def test_adapters_that_are_never_idle_keep_no_other_out(
    stub: Any, agent: ReplicaAgent, long: dict[str, Any]
) -> None:
    with session(stub) as client:
        for call_id, name in ((1, "one@1"), (2, "two@1")):
            client.start(_request(agent, name, **long), first_id=call_id, credit=1)
            while not client.body(call_id):
                client.read_frame()
        third, again = _request(agent, "three@1"), _request(agent, "one@1")
        third.adapter_wait_ms = again.adapter_wait_ms = 60_000
        client.start(third, first_id=3)
        while _call(stub, _request(agent, "one@1"))[-1].HasField("finished"):
            pass  # new calls with it go on, until the third has waited for a while
        client.start(again, first_id=4)
        client.grant(1, 1 << 30)
        client.read_until_ended(1, 3, 4)
        assert client.events[3][-1].finished.adapter == "three@1"
        assert client.events[4][-1].finished.adapter == "one@1"
        client.grant(2, 1 << 30)
        client.read_until_ended(2)
        assert client.events[2][-1].finished.usage.completion_tokens == long["max_tokens"]


def test_other_bytes_under_the_same_name_are_refused(stub: Any, agent: ReplicaAgent) -> None:
    _text(stub, _request(agent, "one@1"))
    request = _request(agent, "one@1")
    request.adapter_digest = agent.digests["two@1"]
    error = _refusal(stub, request)
    assert error.code == "adapter_mismatch"
    assert _is_for_another_replica(error)
    assert agent.digests["two@1"] in error.message


def test_a_load_that_fails_leaves_nothing_and_is_told(stub: Any, agent: ReplicaAgent) -> None:
    request = _request(agent, "late@1")
    directory = agent.contents.pop(request.adapter_digest)
    error = _refusal(stub, request)
    assert error.code == "adapter_load_failed"
    assert _is_for_another_replica(error)
    assert "nobody registered it" in error.message
    listed = _ask(stub, list=True)
    assert [failure.name for failure in listed.failed] == ["late@1"]
    assert "nobody registered it" in listed.failed[0].reason
    assert "late@1" not in _held(stub)
    agent.heard_when(lambda said: [one.name for one in said.failed_adapters] == ["late@1"])
    agent.contents[request.adapter_digest] = directory
    while not _call(stub, request)[-1].HasField("finished"):
        pass  # a call has it tried again once a second
    assert not _ask(stub, list=True).failed


def test_all_that_ask_for_an_adapter_wait_for_one_load(stub: Any, agent: ReplicaAgent) -> None:
    before = agent.asked[agent.digests["two@1"]]
    agent.open.clear()
    with ThreadPoolExecutor(8) as callers:
        texts = [callers.submit(_text, stub, _request(agent, "two@1")) for _ in range(8)]
        load_when(stub, lambda load: load.calls == 8)
        agent.open.set()
        assert len({text.result() for text in texts}) == 1
    assert agent.asked[agent.digests["two@1"]] == before + 1


def test_a_caller_that_leaves_waits_no_longer_and_the_load_goes_on(
    stub: Any, agent: ReplicaAgent
) -> None:
    agent.open.clear()
    with session(stub) as client:
        client.start(_request(agent, "two@1"), _request(agent, "two@1"))
        load_when(stub, lambda load: load.calls == 2)
        client.cancel(1)
        client.read_until_ended(1)
        assert client.events[1][-1].HasField("cancelled")
        agent.open.set()
        client.read_until_ended(2)
        assert client.events[2][-1].finished.adapter == "two@1"


def test_calls_for_the_base_model_pass_those_that_wait(stub: Any, agent: ReplicaAgent) -> None:
    agent.open.clear()
    with session(stub) as client:
        client.start(_request(agent, "two@1"), chat_request("Hello", **_GREEDY))
        client.read_until_ended(2)
        assert not client.has_ended(1)
        agent.open.set()
        client.read_until_ended(1)


def test_what_is_to_be_held_is_loaded_and_a_pinned_one_stays(
    stub: Any, agent: ReplicaAgent
) -> None:
    wishes = [_wish(agent, "one@1"), _wish(agent, "two@1", pinned=True)]
    _ask(stub, keep=inference_pb2.KeepAdapters(adapters=wishes))
    load_when(stub, lambda load: {"one@1", "two@1"} == set(load.adapters))
    _text(stub, _request(agent, "one@1"))
    _text(stub, _request(agent, "three@1"))
    assert _held(stub) == {"two@1", "three@1"}
    assert [one.pinned for one in _ask(stub, list=True).loaded if one.name == "two@1"] == [True]


def test_what_is_dropped_leaves_when_nobody_uses_it(
    stub: Any, agent: ReplicaAgent, long: dict[str, Any]
) -> None:
    with session(stub) as client:
        client.start(_request(agent, "one@1", **long), credit=1)
        while not client.body(1):
            client.read_frame()
        _ask(stub, keep=inference_pb2.KeepAdapters(dropped=["one@1", "pirate@1"]))
        load_when(stub, lambda load: list(load.adapters) == ["one@1"])
        client.grant(1, 1 << 30)
        client.read_until_ended(1)
        assert client.events[1][-1].finished.usage.completion_tokens == long["max_tokens"]
    load_when(stub, lambda load: not load.adapters)


def test_an_adapter_without_a_digest_has_to_be_there(stub: Any, agent: ReplicaAgent) -> None:
    request = _request(agent, "one@1")
    request.adapter_digest = ""
    assert _refusal(stub, request).code == "model_not_found"
    _text(stub, _request(agent, "one@1"))
    assert _text(stub, request)


def test_adapters_under_mixed_traffic_each_answer_with_their_own_words(
    stub: Any, agent: ReplicaAgent
) -> None:
    names = ["one@1", "two@1", "three@1", ""]
    alone = {name: _answer(stub, agent, name) for name in names}
    assert len(set(alone.values())) == len(names)

    def ask(name: str) -> None:
        for _ in range(6):
            assert _answer(stub, agent, name) == alone[name]

    with ThreadPoolExecutor(8) as callers:
        for done in [callers.submit(ask, name) for name in names * 2]:
            done.result()


def _answer(stub: Any, agent: ReplicaAgent, name: str) -> str:
    """The words of an adapter, asked for until there is room for it."""
    while True:
        events = _call(stub, _request(agent, name))
        if events[-1].HasField("finished"):
            assert events[-1].finished.adapter == name
            words: str = json.loads(answer_of(events))["choices"][0]["message"]["content"]
            return words
        assert events[-1].failed.error.code == "adapter_slots_full", events
