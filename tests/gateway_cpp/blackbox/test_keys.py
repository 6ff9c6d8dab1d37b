"""Who may call: keys, tenants, limits, and what each key's requests cost."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

from penstock.v1 import routes_pb2 as routes
from tests.fakes.fake_control import deployment, route, tenant
from tests.fakes.fake_replica import FakeCall, delta, hang, hello, refuse
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import MINI, Start, System
from tests.gateway_cpp.blackbox.held import Held, busy
from tests.gateway_cpp.blackbox.raw_http import CHAT, Response, chat, request

ACME = tenant(keys=["sesame"])
BEARER = "Authorization: Bearer sesame\r\n"


def is_stranger(answer: Response) -> None:
    """The client is told that its key is none."""
    assert answer.status == 401, answer
    assert answer.error["type"] == "authentication_error"
    assert answer.error["code"] == "invalid_api_key"
    assert answer.headers["x-should-retry"] == "false"
    assert answer.headers["www-authenticate"] == 'Bearer realm="penstock"'


async def publish(system: System, *tenants: routes.Tenant, keys_required: bool = True) -> None:
    """A snapshot with these tenants, in force when this returns."""
    routed = [route(replica) for replica in system.replicas]
    version = await system.control.publish(
        [MINI], routed, tenants=tenants, keys_required=keys_required
    )
    await system.has_routes(version)


@pytest.mark.parametrize("headers", ["", BEARER, "Authorization: Basic eDp5\r\n"])
async def test_before_the_first_key_loopback_is_served_whatever_it_shows(
    system: System, headers: str
) -> None:
    assert (await system.ask(chat(headers))).status == 200


@pytest.mark.parametrize(
    "header",
    [
        "Authorization: Bearer sesame",
        "authorization: bEARER    sesame  ",
        "Authorization:Bearer sesame",
        "x-api-key: sesame",
        "API-Key:   sesame",
        "Authorization: Basic eDp5\r\nX-Api-Key: sesame",
    ],
)
async def test_a_key_is_taken_in_each_way_that_clients_send_it(start: Start, header: str) -> None:
    system = await start(tenants=[ACME], keys_required=True)
    assert (await system.ask(chat(header + "\r\n"))).status == 200
    assert (await system.ask(request("GET", "/v1/models", headers=header + "\r\n"))).status == 200


@pytest.mark.parametrize(
    "header",
    [
        b"X-Other: sesame",
        b"Authorization: Bearer ",
        b"Authorization: Bearer",
        b"Authorization: sesame",
        b"Authorization: Bearer Sesame",
        b"Authorization: Bearer sesame x",
        b"Authorization: Bearer sesam\xe9",
        b"Authorization: Bearer ses\xc3\xa4me",
        b"x-api-key: ",
        b"x-api-key: sesame,sesame",
        b"Authorization: Bearer wrong\r\nx-api-key: sesame",
        b"Authorization: Bearer " + b"x" * 30_000,
    ],
)
async def test_what_is_no_key_is_401_and_reaches_no_replica(start: Start, header: bytes) -> None:
    system = await start(tenants=[ACME], keys_required=True)
    data = chat("X: y\r\n").replace(b"X: y", header)
    is_stranger(await system.ask(data))
    assert not system.replicas[0].calls


@pytest.mark.parametrize(
    ("header", "status"),
    [
        (b"Authorization: Bearer " + b"x" * (64 << 10), 431),
        (b"Authorization: Bearer ses\0ame", 400),
        (b"Authorization: Bearer sesame\r\nAuthorization: Bearer sesame", 400),
        (b"x-api-key: sesame\r\nx-api-key: other", 400),
        (b"Authorization: Bearer\r\n sesame", 400),
    ],
)
async def test_a_head_that_can_be_read_in_two_ways_is_refused(
    start: Start, header: bytes, status: int
) -> None:
    system = await start(tenants=[ACME], keys_required=True)
    data = chat("X: y\r\n").replace(b"X: y", header)
    async with system.client() as client:
        assert (await client.ask(data)).status == status
        assert await client.closed()
    assert not system.replicas[0].calls


async def test_a_key_is_good_until_it_expires(start: Start) -> None:
    in_a_hundred_years = 4_900_000_000_000
    good = tenant(keys=["sesame"], expires_at_ms=in_a_hundred_years)
    old = tenant("old", keys=["old"], expires_at_ms=1)
    system = await start(tenants=[good, old], keys_required=True)
    assert (await system.ask(chat(BEARER))).status == 200
    answer = await system.ask(chat("x-api-key: old\r\n"))
    is_stranger(answer)
    assert "expired" in answer.error["message"]


async def test_a_stranger_is_told_before_its_body_is_taken(start: Start) -> None:
    system = await start(tenants=[ACME], keys_required=True)
    head = "Content-Type: application/json\r\nContent-Length: 16000000\r\n"
    async with system.client() as client:
        await client.send(request(headers=head + "Expect: 100-continue\r\n"))
        is_stranger(await client.response())  # and no 100 came before it
        assert await client.closed()
    async with system.client() as client:
        await client.send(request(headers=head))
        is_stranger(await client.response())


async def test_each_dialect_is_told_401_in_its_own_words(start: Start) -> None:
    system = await start(tenants=[ACME], keys_required=True)
    answer = await system.ask(request(path="/v1/messages", body=b"{}"))
    assert answer.status == 401
    told = json.loads(answer.body)
    assert told["type"] == "error"
    assert told["error"]["type"] == "authentication_error"


async def test_a_tenant_uses_and_sees_only_what_it_may(start: Start) -> None:
    some = tenant(keys=["sesame"], models=["mini"], adapters=["pirate"])
    none = tenant("other", keys=["other"], models=["maxi"])
    both = deployment(adapters={"pirate": "pirate@1", "poet": "poet@1"})
    system = await start(deployment=both, tenants=[some, none], keys_required=True)
    for model, status in (("mini", 200), ("mini:pirate", 200), ("mini:poet", 403)):
        answer = await system.ask(chat(BEARER, model=model))
        assert answer.status == status
        if status == 403:
            assert answer.error["type"] == "permission_error"
            assert answer.headers["x-should-retry"] == "false"
    other = "x-api-key: other\r\n"
    assert (await system.ask(chat(other))).status == 403

    async def listed(headers: str) -> set[str]:
        answer = await system.ask(request("GET", "/v1/models", headers=headers))
        return {model["id"] for model in json.loads(answer.body)["data"]}

    assert await listed(BEARER) == {"mini", "mini:pirate", "mini:pirate@1"}
    assert await listed(other) == set()
    hidden = await system.ask(request("GET", "/v1/models/mini", headers=other))
    assert hidden.status in (403, 404)


async def test_nobody_hears_of_a_model_that_it_may_not_use(start: Start) -> None:
    all_of_them, none = tenant(keys=["sesame"]), tenant("other", keys=["other"], models=["maxi"])
    system = await start(tenants=[all_of_them, none], keys_required=True)
    unnamed = json.dumps({"messages": CHAT["messages"]}).encode()
    for asked, status in (
        (chat("x-api-key: other\r\n", model="nothing"), 404),
        (request("GET", "/v1/models/nothing", headers="x-api-key: other\r\n"), 404),
        (request(body=unnamed, headers="x-api-key: other\r\n"), 400),
        (request("GET", "/health/deep"), 200),
        (request("GET", "/health/deep", headers="x-api-key: wrong\r\n"), 200),
        (request("GET", "/health/deep", headers="x-api-key: other\r\n"), 200),
    ):
        answer = await system.ask(asked)
        assert answer.status == status, answer
        assert b"mini" not in answer.body, answer
    known = await system.ask(request("GET", "/health/deep", headers=BEARER))
    assert [each["id"] for each in json.loads(known.body)["deployments"]] == ["mini"]


async def test_a_new_key_works_and_a_revoked_one_stops_with_the_next_snapshot(
    start: Start,
) -> None:
    system = await start()
    assert (await system.ask(chat())).status == 200
    await publish(system, ACME)
    is_stranger(await system.ask(chat()))
    assert (await system.ask(chat(BEARER))).status == 200
    await publish(system, tenant(keys=["other"]))
    is_stranger(await system.ask(chat(BEARER)))
    assert (await system.ask(chat("x-api-key: other\r\n"))).status == 200
    await publish(system, keys_required=False)
    assert (await system.ask(chat())).status == 200


async def test_a_stream_goes_on_when_its_key_is_revoked(start: Start) -> None:
    held = Held()
    system = await start(scripts=(held,), tenants=[ACME], keys_required=True)
    async with busy(system, chat(BEARER)) as client:
        await publish(system, tenant(keys=["other"]))
        held.let_go()
        assert (await client.response()).status == 200
        is_stranger(await client.ask(chat(BEARER)))


async def test_requests_over_a_limit_are_429_and_told_when_to_come_back(start: Start) -> None:
    few = tenant(keys=["sesame"], limits={"requests_per_minute": 30})
    system = await start(tenants=[few])
    for left in range(29, -1, -1):
        answer = await system.ask(chat(BEARER, stream=left % 2 == 0))
        assert answer.status == 200
        assert answer.headers["x-ratelimit-limit-requests"] == "30"
        assert int(answer.headers["x-ratelimit-remaining-requests"]) in (left, left + 1)
        assert answer.headers["x-ratelimit-reset-requests"]
    answer = await system.ask(chat(BEARER))
    assert answer.status == 429
    assert answer.error["code"] == "rate_limit_exceeded"
    assert answer.headers["x-penstock-drop-reason"] == "rate_limited"
    assert answer.headers["x-ratelimit-remaining-requests"] == "0"
    assert 0 < int(answer.headers["retry-after-ms"]) <= 2_000
    began = time.monotonic()
    async with asyncio.timeout(20):
        while (await system.ask(chat(BEARER))).status == 429:
            pass
    told = int(answer.headers["retry-after-ms"]) / 1000
    assert time.monotonic() - began < told + 1


async def test_tokens_over_a_limit_are_429_until_they_are_back(start: Start) -> None:
    few = tenant(keys=["sesame"], limits={"tokens_per_minute": 600})

    async def costly(call: FakeCall) -> None:
        call.usage.completion_tokens = 700
        await hello(call)

    system = await start(scripts=(costly,), tenants=[few])
    answer = await system.ask(chat(BEARER, max_tokens=8))
    assert answer.status == 200
    assert answer.headers["x-ratelimit-limit-tokens"] == "600"
    answer = await system.ask(chat(BEARER, max_tokens=8))
    assert answer.status == 429
    assert answer.headers["x-ratelimit-remaining-tokens"] == "0"
    assert 9_000 < int(answer.headers["retry-after-ms"]) < 20_000


async def test_one_tenants_limit_is_not_anothers(start: Start) -> None:
    one = tenant("one", keys=["sesame"], limits={"max_streams": 1})
    two = tenant("two", keys=["other"], limits={"max_streams": 1})
    held = Held()
    system = await start(scripts=(held,), tenants=[one, two])
    async with busy(system, chat(BEARER)) as first:
        assert (await system.ask(chat(BEARER))).status == 429
        async with busy(system, chat("x-api-key: other\r\n")) as second:
            held.let_go(3)
            assert (await first.response()).status == 200
            assert (await second.response()).status == 200
    assert (await system.ask(chat(BEARER))).status == 200


async def test_a_tenants_name_and_salt_go_with_its_calls(start: Start) -> None:
    system = await start(tenants=[tenant(keys=["sesame"], cache_salt="pepper")])
    assert (await system.ask(chat(BEARER))).status == 200
    request = system.replicas[0].calls[0].request
    assert (request.tenant, request.tenant_salt) == ("acme", "pepper")


async def costs(system: System, prompt: int, completion: int) -> None:
    """Waits until the report says that acme's key cost so much, in one request."""

    def told(report: routes.GatewayReport) -> bool:
        return any(
            (row.tenant, row.key_id, row.deployment) == ("acme", "k1", "mini")
            and (row.requests, row.prompt_tokens, row.completion_tokens) == (1, prompt, completion)
            for row in report.usage
        )

    report = await system.reports(told, f"a request of {prompt} and {completion} tokens")
    assert report.instance
    assert report.metrics_address == "127.0.0.1:0", "as it was told"


async def lost(call: FakeCall) -> None:
    """Seven tokens, and then nothing."""
    await call.send(delta("first"), tokens=3)
    await call.send(delta("second"), tokens=4)
    await call.cancelled.wait()


async def test_a_finished_request_costs_what_its_replica_says(start: Start) -> None:
    system = await start(tenants=[ACME])
    assert (await system.ask(chat(BEARER))).status == 200
    await costs(system, 3, 2)


async def test_a_cancelled_request_costs_what_the_cancel_is_answered_with(start: Start) -> None:
    system = await start(scripts=(hang,), tenants=[ACME])
    async with busy(system, chat(BEARER)) as client:
        client.leave()
        await costs(system, 3, 2)


async def test_a_failed_request_costs_what_the_failure_says(start: Start) -> None:
    shown = asyncio.Event()

    async def fails(call: FakeCall) -> None:
        await call.send(delta("first"), tokens=1)
        await shown.wait()
        await refuse(500, "engine_error")(call)

    system = await start(scripts=(fails,), tenants=[ACME])
    async with busy(system, chat(BEARER, stream=True)) as client:
        await client.head()
        assert await client.chunk() == delta("first")
        shown.set()
        await costs(system, 3, 2)


async def test_a_request_whose_replica_is_lost_costs_what_was_seen_of_it(start: Start) -> None:
    system = await start(scripts=(lost,), tenants=[ACME])
    async with busy(system, chat(BEARER, stream=True)) as client:
        await client.head()
        seen = b""
        while delta("second") not in seen:
            seen += await client.chunk() or b""
        await system.replicas[0].die()
        await costs(system, 3, 7)


async def test_what_a_limit_refused_is_reported(start: Start) -> None:
    spent = tenant(keys=["sesame"], limits={"quota_used_up": True})
    system = await start(tenants=[spent])
    answer = await system.ask(chat(BEARER))
    assert answer.error["code"] == "insufficient_quota"
    await system.reports(
        lambda report: any(
            (row.tenant, row.key_id, row.rejected) == ("acme", "k1", 1) for row in report.usage
        ),
        "a refusal",
    )


async def test_a_quota_comes_back_when_its_day_is_over(start: Start) -> None:
    over = {"quota_used_up": True, "quota_resets_at_ms": 1}
    system = await start(tenants=[tenant(keys=["sesame"], limits=over)])
    assert (await system.ask(chat(BEARER))).status == 200


async def test_no_key_is_ever_logged(start: Start) -> None:
    system = await start("--log-level", "debug", tenants=[ACME], keys_required=True)
    for key in ("sesame", "sesame-not-known", "ses\x01ame"):
        for name in ("Authorization: Bearer ", "x-api-key: ", "api-key: "):
            await system.ask(chat(f"{name}{key}\r\n"))
            await system.ask(chat(f"{name}{key}\r\n", model="none"))
    await until(lambda: system.gateway.count_log("request settled") >= 6, "they are logged")
    assert not [line for line in system.gateway.logs() if "ses" in json.dumps(line)]


@pytest.mark.parametrize("flags", [(), ("--open",)])
async def test_beyond_loopback_it_is_open_only_where_it_is_told_so(
    start: Start, flags: tuple[str, ...]
) -> None:
    system = await start("--listen", "0.0.0.0:0", *flags)
    answer = await system.ask(chat())
    if flags:
        assert answer.status == 200
    else:
        is_stranger(answer)
    await publish(system, ACME)
    is_stranger(await system.ask(chat()))
    assert (await system.ask(chat(BEARER))).status == 200
