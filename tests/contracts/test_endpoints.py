"""Each endpoint that a replica says its model serves, seen through the Inference service."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.v1 import common_pb2, inference_pb2
from tests.fakes.replica_process import answer_of, load_when, raw_request, session

pytestmark = pytest.mark.processes

_MESSAGES = [{"role": "user", "content": "Hello there"}]
_VLLM = pytest.mark.parametrize(
    "replica", [pytest.param("vllm", marks=pytest.mark.vllm)], indirect=True
)


def _request(path: str, **fields: Any) -> inference_pb2.CallRequest:
    request = raw_request(json.dumps(fields).encode())
    request.path = path
    return request


def _asked(stub: Any, path: str, **fields: Any) -> list[inference_pb2.CallEvent]:
    return list(stub.Call(_request(path, **fields), timeout=60))


def test_an_endpoint_that_the_model_lacks_may_be_asked_of_another_replica(stub: Any) -> None:
    (event,) = _asked(stub, "/v1/rerank", query="Hello", documents=["Hi"])
    error = event.failed.error
    assert (error.status, error.code, error.param) == (400, "unsupported_endpoint", "model")
    assert "/v1/chat/completions" in error.message
    assert (error.fault, error.retry) == (
        common_pb2.FAULT_CLIENT,
        common_pb2.RETRY_BEFORE_FIRST_TOKEN,
    )


@_VLLM
@pytest.mark.parametrize(
    ("path", "fields", "last"),
    [
        ("/v1/responses", {"input": "Hello"}, b"event: response.completed"),
        ("/v1/messages", {"messages": _MESSAGES, "max_tokens": 100}, b"event: message_stop"),
    ],
)
def test_streams_without_a_done_end_as_finished(
    stub: Any, path: str, fields: dict[str, Any], last: bytes
) -> None:
    events = _asked(stub, path, stream=True, temperature=0, **fields)
    *_, end, rest = answer_of(events).split(b"\n\n")
    assert end.startswith(last)
    assert rest == b""
    assert events[-1].finished.usage.completion_tokens > 0
    assert events[0].head.prompt_tokens > 0


@_VLLM
@pytest.mark.parametrize(
    ("path", "fields", "field"),
    [
        ("/v1/messages/count_tokens", {"messages": _MESSAGES}, "input_tokens"),
        ("/tokenize", {"prompt": "Hello"}, "count"),
        ("/detokenize", {"tokens": [5, 6]}, "prompt"),
    ],
)
def test_what_only_asks_the_tokenizer_is_answered(
    stub: Any, path: str, fields: dict[str, Any], field: str
) -> None:
    events = _asked(stub, path, **fields)
    assert json.loads(answer_of(events))[field]
    assert events[-1].finished.usage.completion_tokens == 0


@_VLLM
@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/v1/responses", {"input": "Hello", "max_output_tokens": 3000, "ignore_eos": True}),
        ("/v1/completions", {"prompt": "Hello", "max_tokens": 3000, "ignore_eos": True}),
    ],
)
def test_a_cancel_frees_the_engine(stub: Any, path: str, fields: dict[str, Any]) -> None:
    with session(stub) as client:
        client.start(_request(path, stream=True, **fields))
        client.read_frame()
        load_when(stub, lambda load: load.running == 1)
        client.cancel(1)
        load_when(stub, lambda load: load.running == 0)
        assert not client.has_ended(1)
