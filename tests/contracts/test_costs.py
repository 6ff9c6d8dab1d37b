"""What every engine tells of calls and of itself: costs, budgets, load and metrics.

The file's name stands before that of test_engine.py, which stops the replica.
"""

from __future__ import annotations

from typing import Any

import pytest

from penstock.v1 import common_pb2, inference_pb2
from tests.fakes.contract_engines import LOCAL
from tests.fakes.replica_process import chat_request, load_when, session

pytestmark = pytest.mark.processes

_GREEDY: dict[str, Any] = {"temperature": 0, "max_tokens": 12, "ignore_eos": True}
_LONG: dict[str, Any] = {**_GREEDY, "max_tokens": 600, "stream": True}


def _call(stub: Any, request: inference_pb2.CallRequest) -> list[inference_pb2.CallEvent]:
    return list(stub.Call(request, timeout=60))


def _failure(events: list[inference_pb2.CallEvent]) -> common_pb2.ErrorDetail:
    assert len(events) == 1, events
    assert events[0].HasField("failed"), events
    return events[0].failed.error


@LOCAL
def test_a_cancel_is_answered_with_the_tokens_that_were_made_for_it(stub: Any) -> None:
    before = load_when(stub, lambda load: load.running == 0 and load.calls == 0)
    request = chat_request("A long story", **_LONG)
    whole = _call(stub, chat_request("A long story", **_GREEDY))[-1].finished.usage
    with session(stub) as client:
        client.start(request)
        client.read_frame()
        client.cancel(1)
        client.read_until_ended(1)
        usage = client.events[1][-1].cancelled.usage
    read = client.body(1).count(b'"content"') - 1  # the role's event has some, too
    assert read <= usage.completion_tokens < 600
    assert usage.prompt_tokens == whole.prompt_tokens
    told = before.tokens + whole.completion_tokens + usage.completion_tokens
    after = load_when(stub, lambda load: load.tokens >= told and load.running == 0)
    assert after.tokens == told


def test_a_failed_call_says_what_it_cost(stub: Any) -> None:
    request = chat_request("Hello", **_GREEDY)
    request.max_prompt_tokens = 1
    failed = _call(stub, request)[-1].failed
    assert failed.usage == common_pb2.Usage(), "it never came to the engine"


@LOCAL
def test_a_prompt_beyond_the_calls_budget_is_refused_with_both_numbers(stub: Any) -> None:
    request = chat_request("Hello there", **_GREEDY)
    prompt = _call(stub, request)[-1].finished.usage.prompt_tokens
    request.max_prompt_tokens = prompt
    assert _call(stub, request)[-1].HasField("finished")
    request.max_prompt_tokens = prompt - 1
    error = _failure(_call(stub, request))
    assert (error.status, error.type) == (400, "invalid_request_error")
    assert (error.code, error.param) == ("token_budget_exceeded", "messages")
    assert f"has {prompt} tokens" in error.message
    assert f"most {prompt - 1} " in error.message
    assert error.retry == common_pb2.RETRY_NEVER


def test_an_answer_beyond_the_calls_budget_is_refused_with_both_numbers(stub: Any) -> None:
    request = chat_request("Hello there", **_GREEDY)
    request.max_completion_tokens = 12
    assert _call(stub, request)[-1].finished.usage.completion_tokens == 12
    request.max_completion_tokens = 11
    error = _failure(_call(stub, request))
    assert (error.status, error.code) == (400, "token_budget_exceeded")
    assert error.param == "max_tokens"
    assert "is 12, at most 11 " in error.message


def test_a_request_without_a_limit_gets_the_calls(stub: Any) -> None:
    request = chat_request("Hello there", temperature=0, ignore_eos=True)
    request.max_completion_tokens = 7
    finished = _call(stub, request)[-1].finished
    assert finished.usage.completion_tokens == 7
    assert list(finished.finish_reasons) == ["length"]


def test_the_metrics_are_the_replicas_own_and_its_engines(stub: Any) -> None:
    finished = _call(stub, chat_request("Hello", **_GREEDY))[-1].finished
    load_when(stub, lambda load: load.tokens > 0)
    text = stub.Metrics(inference_pb2.MetricsRequest(), timeout=20).text
    samples = dict(
        line.rsplit(" ", 1) for line in text.splitlines() if line and not line.startswith("#")
    )
    assert samples['penstock_replica_state{state="ready"}'] == "1"
    assert float(samples["penstock_replica_completion_tokens_total"]) >= 12
    assert float(samples['penstock_replica_resident_memory_bytes{process="replica"}']) > 1 << 20
    assert any(name.startswith("vllm:") for name in samples) == (finished.backend == "vllm")
    assert len(samples) == len({line for line in text.splitlines() if line and line[0] != "#"})


@LOCAL
def test_a_session_that_asks_hears_of_the_load_as_it_changes(stub: Any) -> None:
    load_when(stub, lambda load: load.calls == 0)
    with session(stub) as client, session(stub) as other:
        client.hello("gw-1")
        assert client.read_frame().load.state == inference_pb2.REPLICA_STATE_READY
        assert client.loads[0].gateways >= 1
        assert client.loads[0].calls == 0
        other.hello("gw-2", watch_load=False)
        other.start(chat_request("A long story", **_LONG))
        while not (client.loads[-1].running and client.loads[-1].calls_elsewhere == 1):
            client.read_frame()  # an engine may yet run what a call before this one left behind
        assert client.loads[-1].max_running > 1
        while client.loads[-1].running:
            client.read_frame()
        assert client.loads[-1].tokens >= client.loads[0].tokens + 600
        assert client.loads[-1].steps > client.loads[0].steps
        assert client.loads[-1].prompt_tokens > client.loads[0].prompt_tokens
        assert any(load.step_us for load in client.loads)
        assert not other.loads
