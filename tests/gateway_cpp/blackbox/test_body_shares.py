"""Bodies that never come whole: their own client waits for their room, and no other."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

from tests.fakes.fake_control import tenant
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.raw_http import CHAT, Response, request

MIB = 1 << 20
FLAGS = ("--body-limit-bytes", str(MIB), "--body-budget-bytes", str(4 * MIB))
TENANTS = [tenant("rude", keys=["k-rude"]), tenant("meek", keys=["k-meek"])]
RUDE = "Authorization: Bearer k-rude\r\n"
MEEK = "Authorization: Bearer k-meek\r\n"
BODY = json.dumps(CHAT | {"x": "y" * 150_000}).encode()


async def stall(system: System, headers: str) -> Response:
    """The answer to a large body of which the last byte never comes."""
    length = f"Content-Type: application/json\r\nContent-Length: {MIB}\r\n"
    async with system.client() as client, asyncio.TaskGroup() as group:
        # The gateway stops reading where it has no room.
        group.create_task(client.send(request(headers=headers + length) + b" " * (MIB - 1)))
        return await client.response()


async def refusal_of_eight(
    system: System, headers: str, then: Callable[[], Awaitable[None]]
) -> Response:
    """What the first of eight of these is told that is refused; then the rest goes on meanwhile."""
    first: asyncio.Queue[Response] = asyncio.Queue()

    async def one() -> None:
        first.put_nowait(await stall(system, headers))

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one()) for _ in range(8)]
        refused = await first.get()
        await then()
        for task in tasks:
            task.cancel()
    return refused


async def test_stalled_bodies_of_a_tenant_wait_for_each_other_and_leave_others_room(
    start: Start,
) -> None:
    system = await start(*FLAGS, tenants=TENANTS, keys_required=True)

    async def others_are_served() -> None:
        asked = (system.ask(request(body=BODY, headers=MEEK)) for _ in range(6))
        assert {answer.status for answer in await asyncio.gather(*asked)} == {200}

    refused = await refusal_of_eight(system, RUDE, others_are_served)
    assert refused.status == 429
    assert "--body-share-bytes" in refused.error["message"]
    assert str(MIB + (256 << 10)) in refused.error["message"]
    assert int(refused.headers["retry-after"]) >= 1


async def test_without_keys_an_address_is_a_client(start: Start) -> None:
    system = await start(*FLAGS)
    refused = await refusal_of_eight(system, "", lambda: asyncio.sleep(0))
    assert refused.status == 429
