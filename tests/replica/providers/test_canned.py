"""The canned engine in a real replica process."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.v1 import common_pb2, inference_pb2
from tests.fakes.replica_process import (
    ReplicaProcess,
    answer_of,
    chat_request,
    inference_stub,
    running_replica,
    sse_objects,
)

pytestmark = pytest.mark.processes

_CANNED = ("--engine", "canned", "--model", "sorry-1")
_TEXT = "Sorry, we are  busy.\nCome again."


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A client of a replica that answers with the text; an input token costs 1, an output token 2
    millionths of a dollar."""
    prices = ("usd_per_million_input=1", "usd_per_million_output=2")
    words = [word for text in (f"text={_TEXT}", *prices) for word in ("--engine-arg", text)]
    log = tmp_path_factory.mktemp("canned") / "log"
    with running_replica(log, *_CANNED, *words) as replica, inference_stub(replica.address) as stub:
        yield stub


def _call(stub: Any, **fields: Any) -> list[inference_pb2.CallEvent]:
    return list(stub.Call(chat_request("Is anybody there?", **fields), timeout=10))


def test_the_text_is_the_answer_word_for_word_streamed_and_unary(stub: Any) -> None:
    unary = json.loads(answer_of(_call(stub)))
    assert unary["choices"][0]["message"]["content"] == _TEXT
    assert unary["choices"][0]["finish_reason"] == "stop"
    deltas = [
        one["choices"][0]["delta"] for one in sse_objects(answer_of(_call(stub, stream=True)))
    ]
    assert deltas[0]["role"] == "assistant"
    assert "".join(delta.get("content", "") for delta in deltas) == _TEXT


def test_its_words_are_tokens_and_have_their_price(stub: Any) -> None:
    finished = _call(stub, stream=True)[-1].finished
    assert (finished.usage.prompt_tokens, finished.usage.completion_tokens) == (3, 6)
    assert finished.usage.cost_nanousd == 3 * 1000 + 6 * 2000
    assert (finished.backend, finished.model) == ("canned", "sorry-1")


def test_prices_that_a_call_brings_win(stub: Any) -> None:
    request = chat_request("Is anybody there?")
    request.input_price, request.output_price, request.cached_price = 10**10, 1, 10**10
    (*_, end) = stub.Call(request, timeout=10)
    assert end.finished.usage.cost_nanousd == 3 * 10_000


def test_a_limit_cuts_it_and_says_so(stub: Any) -> None:
    body = json.loads(answer_of(_call(stub, max_completion_tokens=2)))
    assert body["choices"][0]["message"]["content"] == "Sorry, we"
    assert body["choices"][0]["finish_reason"] == "length"


def test_each_choice_that_is_asked_for_is_given(stub: Any) -> None:
    events = _call(stub, n=2, stream=True)
    ends = [
        one["choices"][0]["index"]
        for one in sse_objects(answer_of(events))
        if one["choices"][0]["finish_reason"]
    ]
    assert ends == [0, 1]
    assert list(events[-1].finished.finish_reasons) == ["stop", "stop"]


def test_it_is_ready_without_torch_and_vllm_in_less_than_two_seconds(tmp_path: Path) -> None:
    began = time.monotonic()
    with running_replica(tmp_path / "log", *_CANNED, "--engine-arg", "text=Sorry."):
        assert time.monotonic() - began < 2


def test_it_loads_nothing_of_the_engines_that_compute() -> None:
    program = (
        "import sys; from penstock.replica.main import make_engine, preload; "
        "from penstock.replica.settings import parse_settings; "
        "from penstock.replica.calls.inbox import Inbox; "
        "s = parse_settings(['--replica-id', 'r', '--deployment', 'd', '--engine', 'canned', "
        "'--model', 'm', '--engine-arg', 'text=x']); preload(s); make_engine(s, Inbox()); "
        "known = {m.split('.')[0] for m in sys.modules}; "
        "print(sorted(known & {'torch', 'vllm', 'boto3', 'openai'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((), "needs the setting text"),
        (("--engine-arg", "text= "), "needs the setting text"),
        (("--engine-arg", "text=x", "--engine-arg", "tone=kind"), "no setting 'tone'"),
        (("--engine-arg", "text=x", "--engine-arg", "retries=-1"), "retries is '-1'"),
        (("--engine-arg", "text=x", "--engine-arg", "connect_timeout_ms=0"), "connect_timeout_ms"),
        (("--engine-arg", "text=x", "--engine-arg", "usd_per_million_input=NaN"), "is 'NaN'"),
        (("--engine-arg", "text=x", "--engine-arg", "tools=maybe"), "tools is 'maybe'"),
        (("--engine-arg", "text=x", "--max-adapters", "2"), "takes no adapters"),
    ],
)
def test_wrong_settings_end_with_72_and_say_what_is_wrong(
    tmp_path: Path, arguments: tuple[str, ...], named: str
) -> None:
    replica = ReplicaProcess(tmp_path / "log", *_CANNED, *arguments)
    try:
        end = replica.ended(within=20)
    finally:
        replica.close()
    assert end.code == 72
    assert named in end.last_line


def test_tools_are_refused_where_the_deployment_has_none(tmp_path: Path) -> None:
    words = ("--engine-arg", "text=x", "--engine-arg", "tools=false")
    with (
        running_replica(tmp_path / "log", *_CANNED, *words) as replica,
        inference_stub(replica.address) as stub,
    ):
        (event,) = _call(stub, tools=[{"type": "function", "function": {"name": "f"}}])
    error = event.failed.error
    assert (error.status, error.param) == (400, "tools")
    assert error.fault == common_pb2.FAULT_CLIENT
