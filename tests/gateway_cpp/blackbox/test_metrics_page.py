"""The metrics page after traffic that ended in every way, as Prometheus itself would read it."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator

import pytest
from prometheus_client import Metric
from prometheus_client.openmetrics import parser as openmetrics

from penstock.v1 import common_pb2 as common
from penstock.v1 import inference_pb2 as inference
from penstock.v1 import routes_pb2 as routes
from tests.fakes.fake_control import deployment
from tests.fakes.fake_replica import DONE, FakeCall, delta, hang, hello, last_delta, refuse
from tests.fakes.promtool import complaints, named, samples
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.raw_http import chat, request

PREFIX = "penstock_gateway_"
MINI = 'deployment="mini"'
CHAT = (
    f'{MINI},gen_ai_operation_name="chat",gen_ai_provider_name="penstock",'
    'gen_ai_request_model="mini",outcome="succeeded"'
)
LIMITED = deployment(limits=routes.Limits(max_ongoing=1, max_queued=1))
TIMINGS = inference.Timings(queue_us=2_000, prefill_us=40_000, decode_us=9_000)

needs_promtool = pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not there")


async def timed_hello(call: FakeCall) -> None:
    """A stream of three tokens from a warm cache, by an engine that tells its times."""
    await call.send(delta("Hel"))
    await call.send(delta("lo"))
    await call.send(last_delta() + DONE, events=2)
    usage = common.Usage(prompt_tokens=30, completion_tokens=3, cached_tokens=16)
    done = inference.Finished(usage=usage, timings=TIMINGS, finish_reasons=["stop"])
    await call.write(inference.CallEvent(call_id=call.call_id, finished=done))
    call.ended = True


async def read(system: System) -> dict[str, float]:
    """Every sample of the page, by its name without prefix and its labels."""
    page = (await system.ask_status("/metrics")).body
    return {name.removeprefix(PREFIX): value for name, value in samples(page).items()}


async def has(system: System, sample: str, value: float) -> None:
    """Waits until the page says so."""
    async with asyncio.timeout(20):
        while (await read(system)).get(sample) != value:
            await asyncio.sleep(0.01)


async def end_in_every_way(system: System) -> None:
    """Whole answers, faults of all sides, a request that waits and leaves, one that is refused."""
    (replica,) = system.replicas
    replica.script = timed_hello
    assert (await system.ask(chat(stream=True))).status == 200
    replica.script = hello
    assert (await system.ask(chat())).status == 200
    replica.script = refuse(500, "server_error", retry=True)
    assert (await system.ask(chat())).status == 500
    assert (await system.ask(chat(stream="maybe"))).status == 400
    assert (await system.ask(chat(model='no"such\\model'))).status == 404
    assert (await system.ask(b"GARBAGE\r\n\r\n")).status == 400
    replica.script = hang
    calls = len(replica.calls)
    async with system.client() as runs, system.client() as waits:
        await runs.send(chat())
        await until(lambda: len(replica.calls) > calls, "the call arrives")
        await has(system, f"in_flight{{{MINI}}}", 1)
        await waits.send(chat())
        await has(system, f"queued{{{MINI}}}", 1)
        assert (await system.ask(chat())).status == 429
        waits.leave()
        await has(system, f"queued{{{MINI}}}", 0)
        runs.leave()
        await has(system, f"in_flight{{{MINI}}}", 0)


@needs_promtool
async def test_prometheus_has_nothing_against_the_page(start: Start) -> None:
    system = await start(deployment=LIMITED)
    assert complaints((await system.ask_status("/metrics")).body) == "", "before any request"
    await end_in_every_way(system)
    assert complaints((await system.ask_status("/metrics")).body) == ""


async def test_every_end_is_counted_once(start: Start) -> None:
    system = await start(deployment=LIMITED)
    await end_in_every_way(system)
    page = await read(system)
    ends = {name: value for name, value in page.items() if name.startswith("requests_total")}
    assert ends == {
        f'requests_total{{code="200",{MINI},outcome="succeeded"}}': 2,
        f'requests_total{{code="429",{MINI},outcome="rejected"}}': 1,
        f'requests_total{{code="499",{MINI},outcome="cancelled"}}': 2,
        f'requests_total{{code="500",{MINI},outcome="failed"}}': 1,
        'requests_total{code="400",deployment="unknown",outcome="invalid"}': 1,
        'requests_total{code="404",deployment="unknown",outcome="invalid"}': 1,
    }
    assert page[f'drops_total{{{MINI},reason="queue_full"}}'] == 1
    assert page[f'drops_total{{{MINI},reason="client_gone"}}'] == 1
    assert page[f"attempts_total{{{MINI}}}"] == 4
    assert page[f"failovers_total{{{MINI}}}"] == 0
    assert page["bad_requests_total"] == 1
    assert page["keys_refused_total"] == 0
    assert page['held_bytes{of="requests"}'] == 0
    assert page['held_bytes{of="answers"}'] == 0


async def test_a_stream_tells_its_times_and_tokens(start: Start) -> None:
    system = await start(scripts=(timed_hello,))
    assert (await system.ask(chat(stream=True))).status == 200
    await has(system, f"completion_tokens_total{{{MINI}}}", 3)
    page = await read(system)
    assert page[f"prompt_tokens_total{{{MINI}}}"] == 30
    assert page[f"cached_tokens_total{{{MINI}}}"] == 16
    assert page[f"prefix_hits_total{{{MINI}}}"] == 1
    assert page[f"engine_ttft_seconds_sum{{{MINI}}}"] == pytest.approx(0.042)
    for name in ("generation", "stream_silence"):
        assert page[f"{name}_seconds_count{{{MINI}}}"] == 1, name
    assert page[f'queue_wait_seconds_count{{{MINI},outcome="succeeded"}}'] == 1
    assert page[f"gen_ai_server_time_to_first_token_seconds_count{{{CHAT}}}"] == 1
    tokens = page[f"gen_ai_server_time_per_output_token_seconds_sum{{{CHAT}}}"]
    assert page[f"generation_seconds_sum{{{MINI}}}"] == pytest.approx(2 * tokens, rel=1e-3)


async def read_open(system: System) -> list[Metric]:
    """The page as OpenMetrics."""
    accept = "Accept: application/openmetrics-text;version=1.0.0,text/plain;q=0.5\r\n"
    answer = await system.ask_status("/metrics", accept)
    assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    read_page: Callable[[str], Iterator[Metric]] = openmetrics.text_string_to_metric_families
    return list(read_page(answer.body.decode()))


def first_token_traces(families: list[Metric]) -> set[str]:
    """To which the buckets of times to first tokens lead."""
    return {
        sample.exemplar.labels["trace_id"]
        for family in families
        for sample in family.samples
        if sample.exemplar and sample.name.startswith("gen_ai_server_time_to_first_token")
    }


async def test_openmetrics_has_the_same_and_leads_to_traces(start: Start) -> None:
    system = await start(scripts=(timed_hello,), deployment=LIMITED)
    await end_in_every_way(system)
    trace = "0af7651916cd43dd8448eb211c80319c"
    parent = f"traceparent: 00-{trace}-b7ad6b7169203331-01\r\n"
    system.replicas[0].script = timed_hello
    families: list[Metric] = []
    async with asyncio.timeout(20):  # a bucket takes another one after half a second
        while trace not in first_token_traces(families):
            assert (await system.ask(chat(parent, stream=True))).status == 200
            await asyncio.sleep(0.05)
            families = await read_open(system)
    plain = set(samples((await system.ask_status("/metrics")).body))
    assert plain == {named(each.name, each.labels) for it in families for each in it.samples}


async def test_no_label_grows_with_what_clients_make_up(start: Start) -> None:
    """Names of models, paths and sessions, and methods: 40 requests, and no series more."""
    system = await start(deployment=LIMITED)
    (replica,) = system.replicas
    replica.script = hello

    async def odd(number: int) -> None:
        word = f"w{number}"
        assert (await system.ask(chat(f"x-penstock-session: {word}\r\n"))).status == 200
        assert (await system.ask(chat(model=word))).status == 404
        assert (await system.ask(request("GET", f"/{word}"))).status == 404
        assert (await system.ask(request(f"M{number}", "/v1/models"))).status in (405, 501)

    await odd(0)
    before = set(await read(system))
    for number in range(1, 10):
        await odd(number)
    new = set(await read(system)) - before
    assert not new, sorted(new)


async def test_replicas_that_get_nothing_for_a_while_are_counted(start: Start) -> None:
    system = await start(scripts=(hello, hello))
    await system.replicas[0].die()
    await has(system, f'ejections_total{{{MINI},reason="unreachable"}}', 1)


async def test_a_deleted_deployment_leaves_the_page(system: System) -> None:
    assert (await system.ask(chat())).status == 200
    await has(system, f"attempts_total{{{MINI}}}", 1)
    await system.has_routes(await system.control.publish([deployment("maxi")], []))
    async with asyncio.timeout(20):
        while any(MINI in name for name in await read(system)):
            await asyncio.sleep(0.05)


async def test_a_key_that_nobody_knows_is_counted(start: Start) -> None:
    system = await start("--listen", "0.0.0.0:0")
    assert (await system.ask(chat("Authorization: Bearer sk-wrong\r\n"))).status == 401
    assert (await system.ask(request("GET", "/v1/models"))).status == 401
    await has(system, "keys_refused_total", 2)
