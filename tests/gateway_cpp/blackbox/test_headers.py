"""What answers say in their headers: whose request it was, who answered it, what may be retried."""

from __future__ import annotations

import json

import pytest

from tests.fakes.fake_replica import hang, refuse
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.raw_http import CHAT, Response, chat, request

CHAT_PATH = "/v1/chat/completions"
TRACE = "0af7651916cd43dd8448eb211c80319c"
TRACEPARENT = f"00-{TRACE}-b7ad6b7169203331-01"
ABOUT_THE_ANSWER = {
    "x-penstock-backend": "mini",
    "x-penstock-backend-version": "weights/mini@weights-1",
    "x-penstock-model-version": "weights-1",
    "x-penstock-replica": "r1",
    "x-penstock-prefix-hit": "0",
    "openai-version": "2020-10-01",
}


async def logged(system: System, answer: Response) -> dict[str, object]:
    """The log line of the request that was answered so."""
    ours = answer.headers["x-request-id"]
    line = await until(
        lambda: system.gateway.find_log("request settled", request_id=ours), "it is logged"
    )
    assert line is not None
    return line


async def test_the_callers_id_comes_back_beside_ours_and_is_logged(system: System) -> None:
    both = "X-Request-Id: common\r\nX-Client-Request-Id: openai's\r\n"
    for headers, theirs in (
        (both, "openai's"),
        ("X-Request-Id: common\r\n", "common"),
        (f"X-Client-Request-Id: {'x' * 512}\r\n", "x" * 512),
    ):
        answer = await system.ask(chat(headers=headers))
        assert answer.headers["x-request-id"].startswith("req_")
        assert answer.headers["x-client-request-id"] == theirs
        assert (await logged(system, answer))["client_request_id"] == theirs


@pytest.mark.parametrize("bad", ["x" * 513, "caf\xe9", "tab\there"])
async def test_an_unfit_id_is_neither_echoed_nor_logged(system: System, bad: str) -> None:
    data = chat().replace(b"Host:", f"X-Client-Request-Id: {bad}\r\nHost:".encode("latin-1"))
    answer = await system.ask(data)
    assert answer.status == 200
    assert "x-client-request-id" not in answer.headers
    assert (await logged(system, answer))["client_request_id"] == ""


async def test_answers_without_a_replica_repeat_the_callers_id_too(system: System) -> None:
    mine = "X-Client-Request-Id: mine\r\n"
    for data in (
        request("GET", "/v1/models", headers=mine),
        request("GET", "/nothing", headers=mine),
        request("GET", "/livez", headers=f"{mine}X-Big: {'x' * 40_000}\r\n"),
    ):
        answer = await system.ask(data)
        assert answer.headers["x-client-request-id"] == "mine"
        assert answer.headers["x-request-id"].startswith("req_")


async def test_the_trace_id_comes_back_on_streams_answers_and_errors(system: System) -> None:
    traced = f"traceparent: {TRACEPARENT}\r\n"
    unknown = json.dumps(CHAT | {"model": "nobody"}).encode()
    for data in (
        chat(headers=traced),
        chat(headers=traced, stream=True),
        request(body=unknown, headers=traced),
        request(body=b"nonsense", headers=traced),
    ):
        answer = await system.ask(data)
        assert answer.headers["x-penstock-trace-id"] == TRACE
        assert (await logged(system, answer))["trace_id"] == TRACE
    assert {call.request.traceparent for call in system.replicas[0].calls} == {TRACEPARENT}


REFUSED_UNREAD = {
    400: request(body=b"{}", headers=f"Content-Encoding: gzip\r\ntraceparent: {TRACEPARENT}\r\n"),
    403: chat(headers=f"Origin: https://elsewhere.example\r\ntraceparent: {TRACEPARENT}\r\n"),
    405: request("GET", CHAT_PATH, headers=f"traceparent: {TRACEPARENT}\r\n"),
    413: request(body=b" " * 1001, headers=f"traceparent: {TRACEPARENT}\r\n"),
    415: request(headers=f"Content-Type: text/plain\r\ntraceparent: {TRACEPARENT}\r\n"),
    431: request(headers=f"traceparent: {TRACEPARENT}\r\nX-Big: {'x' * 40_000}\r\n"),
}


@pytest.mark.parametrize("status", REFUSED_UNREAD)
async def test_errors_of_an_endpoint_whose_request_is_never_read_tell_time_and_trace(
    start: Start, status: int
) -> None:
    system = await start("--body-limit-bytes", "1000")
    answer = await system.ask(REFUSED_UNREAD[status])
    assert answer.status == status
    assert answer.headers["x-penstock-trace-id"] == TRACE
    assert int(answer.headers["openai-processing-ms"]) >= 0


async def test_a_503_for_too_many_clients_tells_time_and_trace(start: Start) -> None:
    system = await start("--threads", "1", "--max-connections", "1", scripts=(hang,))
    async with system.client() as busy:
        await busy.send(chat())
        await until(lambda: system.replicas[0].calls, "the one that may be there has a call")
        answer = await system.ask(chat())
    assert answer.status == 503
    assert len(answer.headers["x-penstock-trace-id"]) == 32
    assert int(answer.headers["openai-processing-ms"]) >= 0


async def test_errors_elsewhere_tell_no_time(system: System) -> None:
    for data in (request("GET", "/nothing"), request("DELETE", "/v1/models")):
        assert "openai-processing-ms" not in (await system.ask(data)).headers


@pytest.mark.parametrize("headers", ["", "traceparent: 00-nonsense\r\n"])
async def test_a_request_without_a_trace_has_one_that_the_engine_is_not_told(
    system: System, headers: str
) -> None:
    answers = [await system.ask(chat(headers=headers)) for _ in range(2)]
    ids = [answer.headers["x-penstock-trace-id"] for answer in answers]
    assert len(set(ids)) == 2
    assert [len(trace_id) for trace_id in ids] == [32, 32]
    assert [call.request.traceparent for call in system.replicas[0].calls] == ["", ""]


@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_says_who_gave_it(system: System, stream: bool) -> None:
    answer = await system.ask(chat(stream=stream))
    assert ABOUT_THE_ANSWER.items() <= answer.headers.items()
    assert int(answer.headers["openai-processing-ms"]) >= 0
    assert int(answer.headers["x-penstock-queue-ms"]) >= 0
    assert "x-penstock-adapter-version" not in answer.headers
    adapter = await system.ask(chat(model="mini:pirate", stream=stream))
    assert adapter.headers["x-penstock-adapter-version"] == "pirate@1"
    assert adapter.headers["x-penstock-backend-version"] == "weights/mini@weights-1+pirate@1"


async def test_every_error_says_whether_to_try_again(start: Start) -> None:
    busy = refuse(503, "overloaded", retry=True)
    system = await start("--body-limit-bytes", "1000", scripts=(busy,))
    again = await system.ask(chat())
    assert again.status == 503
    assert again.headers["x-should-retry"] == "true"
    for data in (
        request(body=b"nonsense"),
        request("GET", "/nothing"),
        request("DELETE", "/v1/models"),
        request(body=b" " * 1001),
        b"GARBAGE\r\n\r\n",
        request("GET", "/livez", headers=f"X-Big: {'x' * 40_000}\r\n"),
    ):
        assert (await system.ask(data)).headers["x-should-retry"] == "false"
