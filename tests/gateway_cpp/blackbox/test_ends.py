"""The table of ends: however an answer ends, its bytes alone tell whether it is whole.

Each end is seen by a reader that knows nothing but HTTP framing, and some by curl and the openai
SDK. A whole answer ends as HTTP says; a cut one never does, and says why where it can.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from dataclasses import replace
from typing import Any

import openai
import pytest

from penstock.v1 import inference_pb2 as inference
from penstock.v1 import routes_pb2 as routes
from tests.fakes.fake_replica import DONE, FakeCall, delta
from tests.fakes.half_answer_process import half_answers
from tests.fakes.spoken import CHAT, MESSAGES, RESPONSES
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.ends import (
    DIALECTS,
    ENDS,
    FLAGS,
    WAYS,
    End,
    Released,
    Seen,
    Way,
    answer_well,
    ended_by_engine,
    ended_too_early,
    half_an_answer,
    read_to_the_end,
    see,
)
from tests.gateway_cpp.blackbox.wires import OVER_BOTH_WIRES

pytestmark = OVER_BOTH_WIRES

CLOSE = b"GET /the-end HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
every_way = pytest.mark.parametrize("way", WAYS)
every_dialect = pytest.mark.parametrize("dialect", DIALECTS)


@every_dialect
@every_way
async def test_a_finished_answer_is_whole(start: Start, way: str, dialect: str) -> None:
    system = await start(*FLAGS, scripts=(answer_well,))
    how = replace(WAYS[way], spoken=DIALECTS[dialect])
    async with system.client() as client:
        await client.send(how.request() + CLOSE)
        data = b""
        while line := await client.line():
            data += line
    first = data.partition(b"HTTP/1.1 404")[0]
    seen = Seen(first, reset=False)
    assert seen.whole
    assert how.spoken.broken not in first
    assert (how.spoken.last in first) == how.stream


def error_type(seen: Seen, how: Way) -> str:
    """Of a unary error, in the words of its endpoint."""
    body = json.loads(seen.body)
    if how.spoken is MESSAGES:
        assert body.keys() == {"type", "error", "request_id"}
        assert body["request_id"].startswith("req_")
    return str(body["error"]["type"])


@every_dialect
@pytest.mark.parametrize("name", ENDS)
@every_way
async def test_an_answer_that_is_cut_is_seen_to_be_cut(
    start: Start, name: str, way: str, dialect: str
) -> None:
    end, how = ENDS[name], replace(WAYS[way], spoken=DIALECTS[dialect])
    released = Released()
    system = await start(*FLAGS, scripts=(end.scripted(released),))
    seen = await see(system, how, end, released)
    assert how.spoken.last not in seen.data
    if not how.stream and end.told:
        assert seen.status >= 500
        assert seen.whole
        assert error_type(seen, how) in ("server_error", "api_error", "overloaded_error")
        return
    assert not seen.whole, seen
    # TLS tells it whatever the framing.
    assert seen.reset or system.wire.context is None
    if end.told:
        assert seen.status == 200
        assert seen.body.count(how.spoken.broken) == 1
        assert seen.body.rstrip(b"\r\n").endswith(b"}")


@every_dialect
async def test_a_stream_that_ends_before_its_last_event_is_cut(start: Start, dialect: str) -> None:
    released = Released()
    system = await start(*FLAGS, scripts=(ended_too_early(released),))
    how = replace(WAYS["chunked"], spoken=DIALECTS[dialect])
    seen = await see(system, how, End(ended_too_early), released)
    assert not seen.whole
    assert how.spoken.broken in seen.body
    assert b"before its last event" in seen.body


def failed_response(body: bytes) -> dict[str, Any]:
    """The data of the event that says so."""
    data = body.partition(b"event: response.failed\ndata: ")[2].partition(b"\n\n")[0]
    failed: dict[str, Any] = json.loads(data)
    return failed


async def test_a_response_that_breaks_is_told_whole_and_failed(start: Start) -> None:
    end = ENDS["engine dead"]
    released = Released()
    system = await start(*FLAGS, scripts=(end.scripted(released),))
    seen = await see(system, replace(WAYS["chunked"], spoken=RESPONSES), end, released)
    failed = failed_response(seen.body)
    assert failed["sequence_number"] == 4
    response = failed["response"]
    assert response["id"] == "resp_1"
    assert response["status"] == "failed"
    assert response["error"]["code"] == "engine_dead"
    (item,) = response["output"]
    assert item["status"] == "incomplete"
    assert item["content"][0]["text"] == "first"


def replica_at(address: str) -> routes.ReplicaRoute:
    """As the head announces it."""
    ready = inference.REPLICA_STATE_READY
    return routes.ReplicaRoute(id="r1", deployment="mini", address=address, node="n1", state=ready)


async def test_a_response_whose_replica_is_killed_is_told_whole_and_failed(start: Start) -> None:
    system = await start(*FLAGS, scripts=())
    how = replace(WAYS["chunked"], spoken=RESPONSES)
    with half_answers() as (process, address), system.connect() as link:
        await system.publish(replica_at(address))
        link.sendall(how.request())
        begun = b""
        while b"first" not in begun:
            begun += await asyncio.to_thread(link.recv, 65536)
        process.kill()
        rest = await asyncio.to_thread(read_to_the_end, link)
    assert not Seen(begun + rest.data, rest.reset).whole
    failed = failed_response(rest.data)
    assert failed["sequence_number"] == 4
    assert failed["response"]["id"] == "resp_1"
    assert failed["response"]["status"] == "failed"
    assert failed["response"]["error"]["code"] == "upstream_error"
    assert failed["response"]["output"][0]["content"][0]["text"] == "first"
    assert rest.data.endswith(b"\n\n\r\n")
    assert rest.data.count(b"event: ") == 1


async def test_a_response_of_which_nothing_came_is_told_as_failed(start: Start) -> None:
    async def silent(call: FakeCall) -> None:
        await call.cancelled.wait()

    system = await start(*FLAGS, "--heartbeat-ms", "50", scripts=(silent,))
    async with openai.AsyncOpenAI(
        base_url=system.gateway.base_url + "/v1",
        api_key="none",
        max_retries=0,
        http_client=system.wire.httpx(),
    ) as client:
        stream = await client.responses.create(model="mini", input="hi", stream=True)
        await system.replicas[0].die()
        events = [await anext(stream), await anext(stream)]
    assert [event.type for event in events] == ["response.created", "response.failed"]
    assert [event.sequence_number for event in events] == [0, 1]
    assert events[1].type == "response.failed"
    assert events[1].response.status == "failed"
    assert events[1].response.error is not None
    assert events[1].response.model == "mini"


async def curl(
    system: System, *options: str, on_first: Released | None = None
) -> tuple[int, bytes]:
    """curl's exit code and what it wrote; `on_first` is set when it has written something."""
    body = json.dumps(CHAT.body | {"stream": True})
    command = ["curl", "-sN", "--max-time", "20", *options, "-d", body]
    command += ["-H", "Content-Type: application/json", *system.wire.curl()]
    command += [f"{system.gateway.base_url}/v1/chat/completions"]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    out = await process.stdout.readline()
    if on_first:
        on_first.set()
    out += await process.stdout.read()
    return await process.wait(), out


@pytest.mark.parametrize("options", [(), ("-0",), ("-H", "Connection: close")], ids=str)
async def test_curl_fails_at_a_cut_stream_and_only_there(
    start: Start, options: tuple[str, ...]
) -> None:
    released = Released()
    system = await start(*FLAGS, scripts=(ended_by_engine("engine_dead")(released),))
    code, out = await curl(system, *options, on_first=released)
    assert code in (18, 56), out  # a part is missing, or the connection was reset
    assert b'"code":"engine_dead"' in out
    system.replicas[0].script = answer_well
    code, out = await curl(system, *options)
    assert code == 0
    assert out.endswith(DONE)


@pytest.mark.parametrize("name", ["replica lost", "engine dead", "drain deadline"])
async def test_the_openai_sdk_raises_at_a_cut_stream(start: Start, name: str) -> None:
    end = ENDS[name]
    released = Released()
    system = await start(*FLAGS, scripts=(end.scripted(released),))
    async with openai.AsyncOpenAI(
        base_url=system.gateway.base_url + "/v1",
        api_key="none",
        max_retries=0,
        http_client=system.wire.httpx(),
    ) as client:
        stream = await client.chat.completions.create(
            model="mini", messages=[{"role": "user", "content": "hi"}], stream=True
        )
        assert (await anext(stream)).choices[0].delta.content == "first"
        released.set()
        await end.then(system)
        with pytest.raises(openai.APIError):
            await anext(stream)


async def test_two_sigterms_and_a_hangup_are_one_drain(start: Start) -> None:
    released = asyncio.Event()

    async def wait(call: FakeCall) -> None:
        await call.send(delta("a"))
        await released.wait()
        await call.send(DONE)
        await call.finish()

    system = await start(scripts=(wait,))
    async with system.client() as running:
        await running.send(Way(stream=True).request())
        await running.head()
        assert await running.chunk() == delta("a")
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGTERM, signal.SIGTERM):
            os.kill(system.gateway.pid, number)
        await until(lambda: system.gateway.find_log("draining"), "it drains")
        os.kill(system.gateway.pid, signal.SIGTERM)
        released.set()
        assert await running.chunk() == DONE
        assert await running.chunk() == b""
    assert await system.gateway.exit_code() == 0


@pytest.mark.parametrize("signals", [(signal.SIGINT, signal.SIGINT), (signal.SIGQUIT,)], ids=str)
async def test_whoever_insists_ends_it_at_once_and_clients_are_told(
    start: Start, signals: tuple[signal.Signals, ...]
) -> None:
    system = await start(scripts=(half_an_answer(Released()),))
    async with system.client() as running:
        await running.send(Way(stream=True).request())
        await running.head()
        assert await running.chunk() == delta("first")
        for number in signals:
            os.kill(system.gateway.pid, number)
            await until(lambda: system.gateway.find_log("draining"), "it drains")
        last = await running.chunk()
        assert last is not None
        assert b'"error"' in last
        assert await running.chunk() is None
    assert await system.gateway.exit_code() == 1
