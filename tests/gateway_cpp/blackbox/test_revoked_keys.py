"""What a key has under way when it is revoked together with that."""

from __future__ import annotations

import asyncio

from tests.fakes.fake_control import route, tenant
from tests.fakes.fake_replica import FakeCall, delta, hang
from tests.gateway_cpp.blackbox.conftest import MINI, Start, System
from tests.gateway_cpp.blackbox.held import asked, busy, every_dialect
from tests.gateway_cpp.blackbox.raw_http import chat

ACME = tenant(keys=["sesame"])
BEARER = "Authorization: Bearer sesame\r\n"


async def begin_and_hang(call: FakeCall) -> None:
    """Says something, and then no more."""
    await call.send(delta("Hel"))
    await call.cancelled.wait()


async def end_its_key(system: System) -> None:
    """The snapshot that says so is in force when this returns."""
    version = await system.control.publish(
        [MINI],
        [route(replica) for replica in system.replicas],
        tenants=[tenant()],
        keys_required=True,
        ended_keys=["k1"],
    )
    await system.has_routes(version)


@every_dialect
async def test_a_stream_ends_with_an_error_that_says_so(start: Start, dialect: str) -> None:
    system = await start(scripts=(begin_and_hang,), tenants=[ACME], keys_required=True)
    async with busy(system, asked(dialect, BEARER, stream=True)) as client, asyncio.timeout(2):
        assert (await client.head())[0] == 200
        assert b"Hel" in (await client.chunk() or b"")
        await end_its_key(system)
        told = await client.chunk() or b""
        assert b"revoked while its request was under way" in told
        assert b"[DONE]" not in told
        assert await client.closed(), "no last chunk says that this was all"
    assert system.replicas[0].calls[0].cancelled.is_set()


async def test_an_answer_that_is_being_made_is_401(start: Start) -> None:
    system = await start(scripts=(hang,), tenants=[ACME], keys_required=True)
    async with busy(system, chat(BEARER)) as client, asyncio.timeout(2):
        await end_its_key(system)
        answer = await client.response()
        assert (answer.status, answer.error["code"]) == (401, "key_revoked")
        assert answer.headers["x-should-retry"] == "false"
