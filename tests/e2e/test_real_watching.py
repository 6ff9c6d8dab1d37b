"""What real vLLM tells beside us: its spans below ours, and its lines among ours."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import openai
import psutil
import pytest

from tests.e2e import verbs
from tests.e2e.system import System, eventually, running
from tests.fakes.collector import FakeCollector

pytestmark = [pytest.mark.vllm, pytest.mark.long, pytest.mark.timeout(400)]

TRACE = "0af7651916cd43dd8448eb211c80319c"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
LEVELS = {"debug", "info", "warning", "error"}
ASKED: Any = {"model": "penstock-mini", "messages": [{"role": "user", "content": "Hello"}]}


@pytest.fixture(scope="module")
def collector() -> Iterator[FakeCollector]:
    with FakeCollector() as collector:
        yield collector


@pytest.fixture(scope="module")
def traced(folder: Path, collector: FakeCollector) -> Iterator[System]:
    """The default model, with the collector and how much vLLM says as an operator sets them."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        environment.setenv("NO_PROXY", "127.0.0.1")
        environment.setenv("VLLM_LOGGING_LEVEL", "INFO")
        with running(folder, within=300) as system:
            yield system


@pytest.fixture
def client(traced: System) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=traced.base_url, api_key="none", max_retries=0) as client:
        yield client


def logs(system: System, *words: str) -> Sequence[dict[str, Any]]:
    """What `penstock logs` tells, without its notes."""
    where = ("--admin", f"http://127.0.0.1:{system.admin_port}", "--data-dir", str(system.data))
    told = verbs.penstock("logs", *words, "--json", *where).splitlines()
    return [line for each in told if (line := json.loads(each))["line"]]


def test_vllms_span_of_a_request_is_below_the_gateways_attempt(
    client: openai.OpenAI, collector: FakeCollector
) -> None:
    parent = {"traceparent": f"00-{TRACE}-b7ad6b7169203331-01"}
    client.chat.completions.create(**ASKED, max_tokens=3, extra_headers=parent)
    client.chat.completions.create(**ASKED, max_tokens=3)

    def both() -> bool:
        return bool(collector.named("llm_request") and collector.named("attempt"))

    eventually(both, within=30, what="spans of gateway and engine")
    (engines,), (attempt,) = collector.named("llm_request"), collector.named("attempt")
    assert engines.span.trace_id.hex() == attempt.span.trace_id.hex() == TRACE
    assert engines.span.parent_span_id == attempt.span.span_id
    assert engines.resource["service.instance.id"] == attempt.attributes["penstock.replica"]


def test_what_an_engine_said_of_a_request_is_found_by_its_clients_name_and_is_as_all_lines_are(
    traced: System, client: openai.OpenAI
) -> None:
    replica = psutil.Process(traced.replicas()[0]["pid"])
    stream = client.chat.completions.create(
        **ASKED,
        stream=True,
        max_tokens=2000,
        extra_headers={"x-request-id": "of-its-client"},
        extra_body={"ignore_eos": True},
    )
    next(stream)
    for each in replica.children(recursive=True):
        each.kill()  # the engine's process
    with pytest.raises(openai.APIError, match="died"):
        list(stream)
    told = logs(traced, "--request", "of-its-client")
    ours = stream.response.headers["x-request-id"]
    assert [each["process"] for each in told if ours not in each["line"]] == []
    (broken,) = [each for each in told if each["process"] == "replica"]
    assert "an error inside vLLM" in broken["line"]

    lines = logs(traced, "--all", "--since", "1h", "--tail", "10000")
    said = [json.loads(each["line"]) for each in lines]
    assert {each["process"] for each in lines} == {"head", "gateway", "node", "replica"}
    assert {"vllm", "vllm engine", "replica"} <= {each.get("process") for each in said}
    assert all(TIME.fullmatch(each["time"]) for each in said)
    assert {each["level"] for each in said} <= LEVELS
    assert [each["level"] for each in said] == [each["level"] for each in lines]
    assert [each["time"] for each in said] == sorted(each["time"] for each in said)
