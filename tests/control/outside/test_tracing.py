"""What a collector is sent of head and agent, and what replicas are told of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from penstock.control.node_agent.replica_record import ReplicaRecord
from penstock.control.outside.tracing import (
    ReplicaTraces,
    TracedReconciling,
    TracedStarts,
    Value,
    timeout_of,
    traces_url,
)
from penstock.control.state.fleet.replica import ReplicaId, ReplicaStart, StartKind, StartStage
from penstock.control.state.rollout.actions import Start
from penstock.v1 import nodes_pb2
from tests.fakes.collector import FakeCollector
from tests.fakes.control_clock import ManualClock

ALL = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318/"}


class Spans:
    """A tracer that keeps what it is given."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []

    def span(
        self, name: str, began: datetime, ended: datetime, *, error: str = "", **told: Value
    ) -> None:
        took = (ended - began).total_seconds()
        self.told.append({"name": name, "seconds": took, "error": error, **told})

    def close(self) -> None:
        """Nothing to send."""


class Rounds:
    """An observer that counts."""

    def __init__(self) -> None:
        self.seen = 0

    def reconciled(self, actions: object, seconds: float) -> None:
        self.seen += 1


@pytest.mark.parametrize(
    ("environment", "url"),
    [
        ({}, ""),
        (ALL, "http://c:4318/v1/traces"),
        (ALL | {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://d/t"}, "http://d/t"),
        (ALL | {"OTEL_SDK_DISABLED": "True"}, ""),
        (ALL | {"OTEL_TRACES_EXPORTER": "none"}, ""),
    ],
)
def test_where_spans_go_is_what_the_standard_variables_say(
    environment: Mapping[str, str], url: str
) -> None:
    assert traces_url(environment) == url


@pytest.mark.parametrize(
    ("environment", "seconds"),
    [
        ({}, 10),
        ({"OTEL_EXPORTER_OTLP_TIMEOUT": "2500"}, 2.5),
        ({"OTEL_EXPORTER_OTLP_TIMEOUT": "1", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": "500"}, 0.5),
    ],
)
def test_a_batch_has_as_many_milliseconds_as_the_standard_says(
    environment: Mapping[str, str], seconds: float
) -> None:
    assert timeout_of(environment) == seconds


def test_a_replica_is_told_the_collector_and_to_begin_no_traces_of_its_own() -> None:
    told = ReplicaTraces(ALL | {"OTEL_RESOURCE_ATTRIBUTES": "env=prod"}).of("r 1", "mini")
    assert told == {
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces",
        "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
        "OTEL_TRACES_SAMPLER": "parentbased_always_off",
        "OTEL_SERVICE_NAME": "penstock-replica",
        "OTEL_RESOURCE_ATTRIBUTES": ("env=prod,service.instance.id=r%201,penstock.deployment=mini"),
    }


def test_a_replica_is_told_nothing_where_there_is_no_collector() -> None:
    assert ReplicaTraces({"OTEL_TRACES_SAMPLER": "always_on"}).of("r", "mini") == {}


def test_what_an_operator_says_of_replicas_spans_stands() -> None:
    more = {"OTEL_TRACES_SAMPLER": "always_on", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc"}
    told = ReplicaTraces(ALL | more).of("r", "mini")
    assert more.items() <= told.items()


def test_a_round_that_did_something_is_a_span_and_the_others_are_none() -> None:
    spans, others = Spans(), Rounds()
    observer = TracedReconciling(others, spans, ManualClock())
    observer.reconciled([], 0.5)
    observer.reconciled([Start(ReplicaId("mini-1"))], 0.25)
    assert others.seen == 2
    assert spans.told == [
        {"name": "reconcile", "seconds": 0.25, "error": "", "actions": ["start mini-1"]}
    ]


def test_a_replicas_start_is_a_span_with_its_stages_and_what_it_failed_of() -> None:
    spans, clock = Spans(), ManualClock()
    spec = nodes_pb2.ReplicaSpec(replica_id="r", deployment="mini", engine="vllm", model="m")
    start = ReplicaStart(StartKind.COLD, "", (StartStage("load", 1200),))
    began = clock.now() - timedelta(seconds=9)
    record = ReplicaRecord(spec=spec, started_at=began, start=start)
    TracedStarts(spans, clock).start_ended(record, "no memory")
    (told,) = spans.told
    assert (told["name"], told["seconds"], told["error"]) == ("replica start", 9, "no memory")
    assert told["start_stages"] == ["load 1200 ms"]


SENDS = """
from datetime import UTC, datetime, timedelta
from penstock.control.outside.tracing import make_tracer
tracer = make_tracer("penstock-head", "m1")
began = datetime(2026, 1, 1, tzinfo=UTC)
ended = began + timedelta(seconds=1)
tracer.span("reconcile", began, ended, error="why", actions=["start r"], empty="")
tracer.close()
"""


def test_spans_come_to_a_collector_with_their_times_and_whose_they_are() -> None:
    with FakeCollector() as collector:
        _run(SENDS, {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "NO_PROXY": "127.0.0.1"})
    (told,) = collector.told
    assert told.resource["service.name"] == "penstock-head"
    assert told.resource["service.instance.id"] == "m1"
    assert told.attributes == {"penstock.actions": ["start r"]}
    assert told.span.status.message == "why"
    assert told.span.end_time_unix_nano - told.span.start_time_unix_nano == 1_000_000_000
    assert told.span.start_time_unix_nano == _nanoseconds(datetime(2026, 1, 1, tzinfo=UTC))


def test_without_a_collector_the_sdk_is_not_even_imported() -> None:
    _run(SENDS + "import sys\nassert 'opentelemetry' not in sys.modules\n", {})


@pytest.mark.parametrize("wrong", ["OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "OTEL_EXPORTER_OTLP_TIMEOUT"])
def test_with_a_variable_that_is_wrong_a_process_starts_and_traces_nothing(wrong: str) -> None:
    told = _run(SENDS, {**ALL, wrong: "x"})
    assert "no traces are sent" in told
    assert wrong in told


def _run(script: str, env: Mapping[str, str]) -> str:
    """In a process that has only this environment; what it says on stderr."""
    command = [sys.executable, "-c", script]
    return subprocess.run(
        command, env=dict(env), check=True, timeout=60, stderr=subprocess.PIPE, text=True
    ).stderr


def _nanoseconds(time: datetime) -> int:
    return int(time.timestamp()) * 1_000_000_000
