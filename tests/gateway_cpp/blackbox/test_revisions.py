"""Replicas of two revisions of one deployment: who is answered by which."""

from __future__ import annotations

from typing import Any

from tests.fakes.fake_control import deployment, route
from tests.fakes.fake_replica import FakeReplica, hello, refuse
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.held import Held, busy, narrow_limits
from tests.gateway_cpp.blackbox.raw_http import chat

SESSIONS = [f"s{i}" for i in range(40)]


async def publish(system: System, *shown: tuple[FakeReplica, str], **fields: Any) -> None:
    """These replicas of `mini`, each of its template's digest, are in force."""
    mini = deployment()
    for name, value in fields.items():
        if name == "canary":
            mini.canary.add(deployment="mini", permille=value, template_digest="new")
        elif name == "limits":
            mini.limits.CopyFrom(value)
        else:
            setattr(mini, name, value)
    routed = []
    for replica, digest in shown:
        routed.append(route(replica))
        routed[-1].template_digest = digest
    await system.has_routes(await system.control.publish([mini], routed))


async def answered_by(system: System, session: str) -> str:
    """The replica that a session's next request went to."""
    answer = await system.ask(chat(headers=f"x-penstock-session: {session}\r\n"))
    assert answer.status == 200
    return str(answer.headers["x-penstock-replica"])


async def test_a_session_stays_with_its_revision_and_moves_once_when_that_is_gone(
    start: Start,
) -> None:
    system = await start(scripts=(hello, hello))
    old, new = system.replicas
    kept = {"session_affinity": "revision"}
    await publish(system, (old, "old"), **kept)
    for session in SESSIONS:
        assert await answered_by(system, session) == "r1"
    await publish(system, (old, "old"), (new, "new"), **kept)
    for session in SESSIONS * 2:
        assert await answered_by(system, session) == "r1"
    fresh = {await answered_by(system, f"new {session}") for session in SESSIONS}
    assert fresh == {"r1", "r2"}
    await publish(system, (new, "new"), **kept)
    for session in SESSIONS:
        assert await answered_by(system, session) == "r2"
    await publish(system, (old, "old"), (new, "new"), **kept)
    for session in SESSIONS:
        assert await answered_by(system, session) == "r2"


async def test_a_session_does_not_fail_with_its_revision(start: Start) -> None:
    system = await start(scripts=(hello, hello))
    old, new = system.replicas
    kept = {"session_affinity": "revision"}
    await publish(system, (old, "old"), **kept)
    assert await answered_by(system, "s") == "r1"
    await publish(system, (old, "old"), (new, "new"), **kept)
    old.script = refuse(500, "engine_error", retry=True)
    assert await answered_by(system, "s") == "r2"


async def test_a_session_waits_for_a_place_at_its_revision(start: Start) -> None:
    held = Held()
    system = await start(scripts=(hello, hello))
    old, new = system.replicas
    kept = {"session_affinity": "revision", "limits": narrow_limits(10, wait_budget_ms=20_000)}
    await publish(system, (old, "old"), **kept)
    for session in ("a", "b"):
        assert await answered_by(system, session) == "r1"
    await publish(system, (old, "old"), (new, "new"), **kept)
    old.script = held
    asked = chat(headers="x-penstock-session: a\r\n")
    async with busy(system, asked) as first, system.client() as second:
        await second.send(chat(headers="x-penstock-session: b\r\n"))
        await system.has_queued(1)
        held.let_go(2)
        assert (await first.response()).status == 200
        answer = await second.response()
    assert answer.headers["x-penstock-replica"] == "r1"
    assert new.calls == []


async def test_a_session_waits_no_longer_than_the_wait_budget(start: Start) -> None:
    held = Held()
    system = await start(scripts=(hello, hello))
    old, new = system.replicas
    kept = {"session_affinity": "revision", "limits": narrow_limits(10, wait_budget_ms=300)}
    await publish(system, (old, "old"), **kept)
    for session in ("a", "b"):
        assert await answered_by(system, session) == "r1"
    await publish(system, (old, "old"), (new, "new"), **kept)
    old.script = held
    async with busy(system, chat(headers="x-penstock-session: a\r\n")):
        assert await answered_by(system, "b") == "r2"
        held.let_go()


async def test_a_canarys_share_goes_to_the_replicas_of_its_digest(start: Start) -> None:
    system = await start(scripts=(hello, hello))
    old, new = system.replicas
    await publish(system, (old, "old"), (new, "new"), canary=0)
    assert {await answered_by(system, session) for session in SESSIONS} == {"r1"}
    await publish(system, (old, "old"), (new, "new"), canary=1000)
    assert {await answered_by(system, session) for session in SESSIONS} == {"r2"}
    await publish(system, (old, "old"), (new, "new"), canary=500)
    shared = [await answered_by(system, session) for session in SESSIONS]
    assert set(shared) == {"r1", "r2"}
    assert [await answered_by(system, session) for session in SESSIONS] == shared
    await publish(system, (old, "old"), canary=1000)
    assert await answered_by(system, "s") == "r1"
