"""What a collector is sent of requests, and what replicas are told of their traces."""

from __future__ import annotations

import asyncio
import importlib.util
import re
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes

from tests.fakes.collector import Answer, FakeCollector, Told
from tests.fakes.fake_replica import FakeCall, hello, refuse
from tests.fakes.gateway_process import ROOT
from tests.fakes.ports import free_address
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.raw_http import chat
from tests.gateway_cpp.blackbox.wires import TLS_FILES

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
MOST_WAITING = 2800  # more than a batch and what waits beside it
SAMPLED = f"traceparent: 00-{TRACE}-{PARENT}-01\r\n"
NOT_SAMPLED = f"traceparent: 00-{TRACE}-{PARENT}-00\r\n"


@pytest.fixture
def collector() -> Iterator[FakeCollector]:
    with FakeCollector() as collector:
        yield collector


def env(collector: FakeCollector, **more: str) -> dict[str, str]:
    """What makes a gateway send its spans there."""
    return {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "NO_PROXY": "127.0.0.1",
        **{f"OTEL_EXPORTER_OTLP_{name}": value for name, value in more.items()},
    }


def told_to_replica(system: System, replica: int = 0, call: int = 0) -> list[str]:
    """The four parts of the traceparent that a replica was sent."""
    return system.replicas[replica].calls[call].request.traceparent.split("-")


async def spans(collector: FakeCollector, count: int) -> list[Told]:
    """Once there are so many."""
    await until(lambda: len(collector.told) >= count, f"{count} spans come")
    return list(collector.told)


def test_spans_speak_of_generative_ai_in_the_words_of_the_conventions_and_of_vllm() -> None:
    vllm = importlib.util.find_spec("vllm")
    assert vllm is not None
    assert vllm.origin is not None
    name = re.compile(r'"(gen_ai\.[a-z_.]+)"')
    its_own = name.findall((Path(vllm.origin).parent / "tracing" / "utils.py").read_text())
    newer = {"gen_ai.prompt.version"}  # than the package of the conventions' names
    spoken = {
        word
        for source in (ROOT / "gateway_cpp/src/observe").glob("*.cc")
        for word in name.findall(source.read_text())
    }
    assert spoken
    conventional = set(map(str, vars(gen_ai_attributes).values()))
    assert spoken <= conventional | set(its_own) | newer


async def test_a_callers_trace_has_the_request_its_attempt_and_what_its_replica_was_told(
    start: Start, collector: FakeCollector
) -> None:
    system = await start(env=env(collector))
    answer = await system.ask(chat(headers=SAMPLED, stream=True))
    assert answer.headers["x-penstock-trace-id"] == TRACE
    request, attempt = (await spans(collector, 2))[:2]
    assert request.span.trace_id.hex() == attempt.span.trace_id.hex() == TRACE
    assert request.span.parent_span_id.hex() == PARENT
    assert attempt.span.parent_span_id == request.span.span_id
    assert told_to_replica(system) == ["00", TRACE, attempt.span.span_id.hex(), "01"]
    assert (request.name, attempt.name) == ("chat mini", "attempt")
    assert request.attributes["gen_ai.operation.name"] == "chat"
    assert request.attributes["penstock.request_id"] == answer.headers["x-request-id"]
    assert "first_token" in request.events
    assert attempt.attributes["penstock.replica"] == "r1"
    assert request.resource["service.name"] == "penstock-gateway"
    assert request.resource["service.instance.id"] == "gw-1"
    assert collector.requests[0][0] == "/v1/traces"


async def test_a_trace_that_its_caller_does_not_want_is_not_sent_and_its_engine_knows_that(
    start: Start, collector: FakeCollector
) -> None:
    system = await start("--trace-sample", "1", env=env(collector))
    await system.ask(chat(headers=NOT_SAMPLED))
    await system.ask(chat(headers=SAMPLED))
    assert {told.span.flags & 1 for told in await spans(collector, 2)} == {1}
    assert told_to_replica(system)[3] == "00"


async def test_a_share_of_the_other_requests_is_sent_and_every_replica_is_told_which(
    start: Start, collector: FakeCollector
) -> None:
    system = await start("--trace-sample", "0.5", env=env(collector))
    for _ in range(40):
        await system.ask(chat())
    flags = [told_to_replica(system, call=i)[3] for i in range(40)]
    assert {"00", "01"} == set(flags)
    chosen = {told_to_replica(system, call=i)[1] for i in range(40) if flags[i] == "01"}
    await until(
        lambda: {told.span.trace_id.hex() for told in collector.told} == chosen,
        "those that were chosen come, and no other",
    )


async def test_what_failed_is_sent_though_nobody_had_chosen_it(
    start: Start, collector: FakeCollector
) -> None:
    system = await start(env=env(collector), scripts=(refuse(500, "engine_error", retry=True),))
    answer = await system.ask(chat(headers=NOT_SAMPLED))
    assert answer.status == 500
    request, attempt = (await spans(collector, 2))[:2]
    assert request.span.status.code == attempt.span.status.code == 2
    assert attempt.attributes["error.type"] == "engine_error"
    assert request.attributes["http.response.status_code"] == 500


async def test_what_was_slow_is_sent_and_what_was_not_is_not(
    start: Start, collector: FakeCollector
) -> None:
    async def slow_in_one_trace(call: FakeCall) -> None:
        if TRACE in call.request.traceparent:
            await asyncio.sleep(0.3)
        await hello(call)

    system = await start("--trace-slow-ms", "300", env=env(collector), scripts=(slow_in_one_trace,))
    await system.ask(chat())
    await system.ask(chat(headers=NOT_SAMPLED))
    assert {told.span.trace_id.hex() for told in await spans(collector, 2)} == {TRACE}


async def test_an_answer_that_another_replica_gave_has_an_attempt_at_each_in_one_trace(
    start: Start, collector: FakeCollector
) -> None:
    failing = refuse(503, "overloaded", retry=True)
    system = await start(env=env(collector), scripts=(failing, failing, hello))
    answer = await system.ask(chat(headers=SAMPLED))
    assert answer.status == 200
    await spans(collector, 2)
    attempts = collector.named("attempt")
    errors = [attempt.attributes.get("error.type", "") for attempt in attempts]
    assert errors[-1] == ""
    assert set(errors[:-1]) <= {"overloaded"}
    sent = {c.request.traceparent.split("-")[2] for r in system.replicas for c in r.calls}
    assert sent == {attempt.span.span_id.hex() for attempt in attempts}


async def test_without_a_collector_replicas_are_told_what_the_client_said(start: Start) -> None:
    system = await start("--trace-sample", "1")
    await system.ask(chat(headers=SAMPLED))
    await system.ask(chat())
    assert told_to_replica(system) == ["00", TRACE, PARENT, "01"]
    assert told_to_replica(system, call=1) == [""]


async def test_headers_and_certificates_are_the_standard_variables(start: Start) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(TLS_FILES / "server.pem", TLS_FILES / "server.key")
    with FakeCollector(tls=tls) as collector:
        more = {
            "HEADERS": "authorization=Bearer%20s3cret",
            "CERTIFICATE": str(TLS_FILES / "ca.pem"),
            "COMPRESSION": "gzip",
        }
        system = await start(env=env(collector, **more))
        await system.ask(chat(headers=SAMPLED))
        await spans(collector, 2)
    headers = collector.requests[0][1]
    assert headers["authorization"] == "Bearer s3cret"
    assert headers["content-encoding"] == "gzip"
    assert "s3cret" not in str(system.gateway.logs())


async def test_a_certificate_that_nobody_vouches_for_gets_no_spans(start: Start) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(TLS_FILES / "server.pem", TLS_FILES / "server.key")
    with FakeCollector(tls=tls) as collector:
        system = await start(env=env(collector))
        await system.ask(chat(headers=SAMPLED))
        system.gateway.terminate()  # the last try
        await until(lambda: system.gateway.find_log("traces are not taken"), "that is told")
    assert not collector.told


async def test_a_collector_that_is_busy_is_asked_again_when_it_said(start: Start) -> None:
    busy = Answer(503, {"retry-after": "1"})
    with FakeCollector(busy) as collector:
        system = await start(env=env(collector))
        await system.ask(chat(headers=SAMPLED))
        await spans(collector, 2)
        assert len(collector.requests) == 2
        await counts(system, "sent", 1)
    assert await system.metric("penstock_gateway_traces_dropped_total") == 0


async def test_what_a_collector_refuses_is_counted_and_nobody_waits_for_it(start: Start) -> None:
    with FakeCollector(Answer(400), Answer(200, rejected=2)) as collector:
        system = await start(env=env(collector))
        await system.ask(chat(headers=SAMPLED))
        await counts(system, "dropped", 1, reason="collector")
        assert system.gateway.find_log("traces are not taken", status=400)
        await system.ask(chat(headers=SAMPLED))
        await counts(system, "dropped", 2, reason="collector")
        assert system.gateway.find_log("the collector threw spans away", spans=2)
    assert await system.metric("penstock_gateway_traces_sent_total") == 0


async def test_a_collector_that_says_nothing_holds_up_nobody_and_what_is_too_much_is_dropped(
    start: Start, collector: FakeCollector
) -> None:
    system = await start("--trace-sample", "1", env=env(collector))
    collector.may_answer.clear()

    async def ask_on() -> None:
        async with system.client() as client:
            for _ in range(MOST_WAITING // 4):
                assert (await client.ask(chat())).status == 200

    async with asyncio.TaskGroup() as group:
        for _ in range(4):
            group.create_task(ask_on())
    assert await system.metric("penstock_gateway_traces_sent_total") == 0
    dropped = await system.metric("penstock_gateway_traces_dropped_total", reason="queue_full")
    assert dropped > 0
    collector.may_answer.set()
    await counts(system, "sent", MOST_WAITING - dropped)


async def test_a_collector_that_is_gone_takes_nothing_from_requests(start: Start) -> None:
    gone = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://{free_address()}", "NO_PROXY": "127.0.0.1"}
    system = await start("--trace-sample", "1", env=gone)
    for _ in range(5):
        assert (await system.ask(chat())).status == 200
    system.gateway.terminate()
    line = await until(lambda: system.gateway.find_log("traces are not taken"), "that is told")
    assert (line["status"], line["requests"]) == (0, 5)


async def test_what_waits_at_the_end_is_sent(start: Start, collector: FakeCollector) -> None:
    system = await start("--trace-sample", "1", env=env(collector))
    await system.ask(chat())
    system.gateway.terminate()
    assert len(await spans(collector, 2)) == 2


@pytest.mark.parametrize(
    ("variable", "value"),
    [("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")],
)
async def test_a_variable_that_is_wrong_is_named_and_the_gateway_serves(
    start: Start, collector: FakeCollector, variable: str, value: str
) -> None:
    system = await start(env={**env(collector), variable: value})
    assert (await system.ask(chat(headers=SAMPLED))).status == 200
    line = system.gateway.find_log("no traces are sent")
    assert line is not None
    assert line["reason"].startswith(variable)


async def counts(system: System, name: str, count: float, **labels: str) -> None:
    """Waits until the metrics say so many."""
    async with asyncio.timeout(20):
        while await system.metric(f"penstock_gateway_traces_{name}_total", **labels) < count:
            await asyncio.sleep(0.05)
