"""Spans of head and agent, and what an agent tells its replicas of where spans go.

All of it by OpenTelemetry's own variables (OTEL_EXPORTER_OTLP_ENDPOINT, _HEADERS, _CERTIFICATE and
so on), which its SDK reads. Where they name no collector, nothing is traced, and the SDK is not
imported.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from importlib import metadata
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote

from penstock.control.state.rollout.actions import Action, Start, Stop, described
from penstock.control.supervision.clock import Clock

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

    # Of the head alone, and of the agent alone: neither waits for the other's.
    from penstock.control.managers.rollout.deployments import ReconcileObserver
    from penstock.control.node_agent.replica_record import ReplicaRecord

log = logging.getLogger(__name__)

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
TRACES_ENDPOINT = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
TIMEOUT = "OTEL_EXPORTER_OTLP_TIMEOUT"
TRACES_TIMEOUT = "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT"
USUAL_TIMEOUT = 10.0  # seconds
TRACES_PROTOCOL = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
SAMPLER = "OTEL_TRACES_SAMPLER"
SERVICE = "OTEL_SERVICE_NAME"
RESOURCE = "OTEL_RESOURCE_ATTRIBUTES"
REPLICA = "penstock-replica"
LAST_SECONDS = 0.5  # that spans get at the end to be sent: `serve` gives a head 1.8 to stop

Value = str | int | float | Sequence[str]


class Tracer(Protocol):
    """Takes spans that have ended. Never waits."""

    def span(
        self, name: str, began: datetime, ended: datetime, *, error: str = "", **told: Value
    ) -> None:
        """A trace of one span. `told`: attributes, `penstock.` before and `.` for `_`; what is
        empty is left out."""

    def close(self) -> None:
        """Sends what is left, as far as that takes no longer than half a second."""


class NoTracer:
    """Where there is no collector."""

    def span(
        self, name: str, began: datetime, ended: datetime, *, error: str = "", **told: Value
    ) -> None:
        """See `Tracer`."""

    def close(self) -> None:
        """See `Tracer`."""


class CollectorTracer:
    """By OpenTelemetry's SDK."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("penstock.control", metadata.version("penstock"))

    def span(
        self, name: str, began: datetime, ended: datetime, *, error: str = "", **told: Value
    ) -> None:
        """See `Tracer`."""
        from opentelemetry.trace import Status, StatusCode

        known = {f"penstock.{key.replace('_', '.')}": value for key, value in told.items() if value}
        span = self._tracer.start_span(name, start_time=_nanoseconds(began), attributes=known)
        if error:
            span.set_status(Status(StatusCode.ERROR, error))
        span.end(end_time=_nanoseconds(ended))

    def close(self) -> None:
        """See `Tracer`."""
        # The SDK waits for half a minute where the collector does not answer.
        last = threading.Thread(target=self._provider.shutdown, daemon=True)
        last.start()
        last.join(LAST_SECONDS)


def make_tracer(service: str, instance: str) -> Tracer:
    """Of this process. `service`: "penstock-head"; `instance`: which of them. With a variable that
    is wrong nothing is traced, and the log says so."""
    if not traces_url(os.environ):
        return NoTracer()
    try:
        tracer = _collector_tracer(service, instance)
    except (ValueError, OSError, RuntimeError) as error:
        log.warning("no traces are sent: %s", error)
        return NoTracer()
    log.info("traces are sent to a collector")
    return tracer


def _collector_tracer(service: str, instance: str) -> CollectorTracer:
    """Raises what the SDK does of its variables."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    known = {"service.name": service, "service.instance.id": instance}
    provider = TracerProvider(resource=Resource.create(known), shutdown_on_exit=False)
    exporter = OTLPSpanExporter(timeout=timeout_of(os.environ))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return CollectorTracer(provider)


def timeout_of(environment: Mapping[str, str]) -> float:
    """Seconds for one batch: the specification has milliseconds, which the SDK reads as seconds.
    Raises `ValueError`."""
    for name in (TRACES_TIMEOUT, TIMEOUT):
        if text := environment.get(name, ""):
            if not text.isdecimal() or not int(text):
                raise ValueError(f"{name} is {text!r}: it must be milliseconds, from 1")
            return int(text) / 1000
    return USUAL_TIMEOUT


def traces_url(environment: Mapping[str, str]) -> str:
    """Where spans are posted to; empty: nowhere."""
    off = environment.get("OTEL_SDK_DISABLED", "").lower() == "true"
    if off or environment.get("OTEL_TRACES_EXPORTER") == "none":
        return ""
    if url := environment.get(TRACES_ENDPOINT, ""):
        return url
    url = environment.get(ENDPOINT, "").rstrip("/")
    return f"{url}/v1/traces" if url else ""


class ReplicaTraces:
    """What replicas find in their environment besides what they inherit of ours, so that their
    engines' spans go where ours do: those of requests that were chosen before they came there."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._resource = environment.get(RESOURCE, "")
        url = traces_url(environment)
        self._always = {
            TRACES_ENDPOINT: url,
            TRACES_PROTOCOL: environment.get(TRACES_PROTOCOL, "http/protobuf"),
            SAMPLER: environment.get(SAMPLER, "parentbased_always_off"),
            SERVICE: REPLICA,
        }
        if not url:
            self._always = {}

    def of(self, replica_id: str, deployment: str) -> dict[str, str]:
        """Of one replica; nothing without a collector."""
        if not self._always:
            return {}
        own = {"service.instance.id": replica_id, "penstock.deployment": deployment}
        told = [f"{key}={quote(value)}" for key, value in own.items()]
        return {**self._always, RESOURCE: ",".join(filter(None, [self._resource, *told]))}


class TracedReconciling:
    """Observes the reconcile loop: a span for each round that did anything."""

    def __init__(self, then: ReconcileObserver, tracer: Tracer, clock: Clock) -> None:
        """`then`: another one that is told."""
        self._then = then
        self._tracer = tracer
        self._clock = clock

    def reconciled(self, actions: Sequence[Action], seconds: float) -> None:
        """See `ReconcileObserver`."""
        self._then.reconciled(actions, seconds)
        if actions:
            now = self._clock.now()
            done = [_sentence(action) for action in actions]
            self._tracer.span("reconcile", now - timedelta(seconds=seconds), now, actions=done)


class TracedStarts:
    """Observes starts of replicas: a span for each, from its process's beginning to its end."""

    def __init__(self, tracer: Tracer, clock: Clock) -> None:
        self._tracer = tracer
        self._clock = clock

    def start_ended(self, record: ReplicaRecord, error: str) -> None:
        """See `StartObserver`."""
        now, spec = self._clock.now(), record.spec
        self._tracer.span(
            "replica start",
            record.started_at or now,
            now,
            error=error,
            replica=spec.replica_id,
            deployment=spec.deployment,
            engine=spec.engine,
            model=spec.model,
            start_kind=record.start.kind,
            start_reason=record.start.reason,
            start_stages=[f"{stage.name} {stage.ms} ms" for stage in record.start.stages],
            restarts=record.restarts,
        )


def _sentence(action: Action) -> str:
    match action:
        case Start(replica_id):
            return f"start {replica_id}"
        case Stop(replica_id):
            return f"stop {replica_id}"
        case _:
            return described(action)


def _nanoseconds(time: datetime) -> int:
    return int(time.timestamp() * 1_000_000) * 1000
