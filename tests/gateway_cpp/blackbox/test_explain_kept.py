"""What is kept of a request, and what is not: no text of its body, no key, nothing that others are
to be asked again; and what a stranger was told."""

from __future__ import annotations

import pytest

from penstock.v1 import common_pb2 as common
from penstock.v1 import explain_pb2 as v1
from penstock.v1 import routes_pb2 as routes
from tests.fakes.collector import FakeCollector
from tests.fakes.fake_control import deployment, route, tenant
from tests.fakes.fake_replica import FakeCall, delta, hang, hello
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.fleets import engine_dies
from tests.gateway_cpp.blackbox.raw_http import chat
from tests.gateway_cpp.blackbox.recorded import record_by, record_of
from tests.gateway_cpp.blackbox.shadowed import rule
from tests.gateway_cpp.blackbox.test_traces import collector, env

__all__ = ["collector"]  # a fixture

SECRET = "swordfish"
SAMPLED = "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n"


async def quotes_it(call: FakeCall) -> None:
    """Refuses what a client wrote in a field, with its value, as replicas do."""
    await call.fail(
        common.ErrorDetail(
            status=400,
            type="invalid_request_error",
            code="invalid_value",
            message=f"'top_k' is '{SECRET}': send a number.",
            param="top_k",
            fault=common.FAULT_CLIENT,
        )
    )


@pytest.mark.parametrize(
    ("fields", "param"), [({"top_k": SECRET}, "top_k"), ({"max_tokens": SECRET}, "max_tokens")]
)
async def test_what_a_client_wrote_is_told_to_itself_alone(
    start: Start, collector: FakeCollector, fields: dict[str, object], param: str
) -> None:
    system = await start(env=env(collector), scripts=(quotes_it,))
    answer = await system.ask(chat(SAMPLED, **fields))
    assert SECRET in answer.error["message"]
    record = await record_of(system, answer)
    assert (record.error_code, record.message) == ("invalid_value", f"param: {param}")
    assert SECRET.encode() not in record.SerializeToString()
    await until(lambda: collector.told, "its spans come")
    assert SECRET not in str([told.span for told in collector.told])
    assert SECRET not in str(system.gateway.logs())


async def test_what_is_quarantined_is_not_said_to_be_repeated(start: Start) -> None:
    system = await start("--threads", "1", scripts=(engine_dies, engine_dies, hello))
    mini, other, following = system.replicas
    version = await system.control.publish(
        [deployment(), deployment("next")],
        [route(mini), route(other), route(following, of="next")],
        shadows=[rule()],
    )
    await system.has_routes(version)
    for _ in range(2):
        assert (await system.ask(chat())).error["code"] == "engine_dead"
    record = await record_of(system, await system.ask(chat()))
    assert record.quarantined
    assert not record.shadows
    assert not following.calls


async def kept(system: System, request_id: str) -> v1.RequestRecord:
    """What is kept of it."""
    found: list[v1.RequestRecord] = []
    while not found:
        found = await system.control.explaining.ask(v1.ExplainQuestion(id=request_id))
    return found[0]


@pytest.mark.parametrize("key", ["", f"Authorization: Bearer {SECRET}\r\n"])
async def test_who_has_no_key_that_is_good_was_told_so_and_fills_no_log(
    start: Start, key: str
) -> None:
    system = await start(tenants=[tenant(keys=["sesame"])], keys_required=True)
    answer = await system.ask(chat(f"{key}x-client-request-id: theirs\r\n"))
    record = await kept(system, answer.headers["x-request-id"])
    assert (record.status, record.outcome, record.tenant) == (401, "invalid", "")
    assert (record.error_code, record.message) == ("invalid_api_key", answer.error["message"])
    assert (record.client_request_id, record.path) == ("theirs", "/v1/chat/completions")
    assert record.trace_id.hex() == answer.headers["x-penstock-trace-id"]
    assert record.client == "127.0.0.1"
    assert SECRET.encode() not in record.SerializeToString()
    assert system.gateway.count_log("request settled") == 0


async def test_one_whose_client_left_has_what_it_had_cost_by_then(start: Start) -> None:
    async def begins(call: FakeCall) -> None:
        await call.send(delta("a"), tokens=2)
        await hang(call)

    prices = routes.Prices(input=1_000, output=10_000, cached=0)
    system = await start(scripts=(begins,), deployment=deployment(prices=prices))
    async with system.client() as client:
        await client.send(chat(stream=True))
        await client.head()
        await client.chunk()
        client.leave()
    line = await until(lambda: system.gateway.find_log("request settled"), "it is logged")
    record = await record_by(system, line["request_id"])
    assert (record.prompt_tokens, record.completion_tokens) == (3, 2)
    assert record.cost_nanousd == 3 * 1_000_000 + 2 * 10_000_000
