"""vLLM's own spans join the trace of a request that was chosen before it came there."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.control.outside.tracing import ReplicaTraces
from penstock.v1 import inference_pb2
from tests.fakes.collector import FakeCollector
from tests.fakes.replica_agent import replica_agent
from tests.fakes.replica_process import chat_request, inference_stub, running_replica
from tests.fakes.warm_pool import Pool

pytestmark = [pytest.mark.vllm, pytest.mark.processes, pytest.mark.timeout(240)]

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
WORDS = ("--engine", "vllm", "--model", "penstock-mini")


def request(request_id: str, traceparent: str) -> inference_pb2.CallRequest:
    """A short chat in that trace."""
    asked = chat_request("Hi", request_id, max_tokens=2)
    asked.traceparent = traceparent
    return asked


def test_those_that_were_chosen_are_sent_and_no_others(tmp_path: Path, vllm_pool: Pool) -> None:
    with FakeCollector() as collector, replica_agent() as agent:
        named = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
        env = {**ReplicaTraces(named).of("r1", "test-model"), "NO_PROXY": "127.0.0.1"}
        running = running_replica(
            tmp_path / "log", *WORDS, within=170, agent=agent, env=env, pool=vllm_pool
        )
        with running as replica, inference_stub(replica.address) as stub:
            for request_id, parent in (
                ("none", ""),
                ("not-chosen", f"00-{TRACE}-{PARENT}-00"),
                ("chosen", f"00-{TRACE}-{PARENT}-01"),
            ):
                assert list(stub.Call(request(request_id, parent), timeout=60))
    (told,) = collector.told
    assert told.name == "llm_request"
    assert (told.span.trace_id.hex(), told.span.parent_span_id.hex()) == (TRACE, PARENT)
    assert "chosen" in str(told.attributes["gen_ai.request.id"])
    assert float(str(told.attributes["gen_ai.latency.time_in_model_prefill"])) > 0
    assert told.resource["service.name"] == "penstock-replica"
    assert told.resource["service.instance.id"] == "r1"
