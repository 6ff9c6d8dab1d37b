"""A real head's registry is killed, crowded and sent garbage, and never has half a version."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import httpx
import pytest

from penstock.adapters.fitness import FamilyLimits
from penstock.adapters.version import WEIGHTS_FILE
from penstock.control.store.adapters.content import AdapterContents
from tests.control.adapter_sources.files import FILES, weights, written
from tests.control.head_process import HeadProcess, running_head
from tests.control.head_uploads import EDGE, coming_in, registered, sent, stored, upload
from tests.fakes.waiting import until

pytestmark = pytest.mark.processes

CROWD = 20


@pytest.fixture
async def head(tmp_path: Path) -> AsyncIterator[HeadProcess]:
    async with running_head(tmp_path / "data") as head:
        await head.put("mini", max_adapters=2)
        yield head


async def at_once(head: HeadProcess, bodies: Iterable[dict[str, str]]) -> list[httpx.Response]:
    """What registrations are answered that are asked for beside each other."""
    url, headers = f"http://{head.admin}/admin/v1/adapters", head.authorization
    asked = (head.client.post(url, json=body, headers=headers, timeout=60) for body in bodies)
    return await asyncio.gather(*asked)


async def test_a_head_killed_during_an_upload_has_nothing_of_it_and_takes_it_again(
    head: HeadProcess,
) -> None:
    body = upload("pirate", {**FILES, WEIGHTS_FILE: weights(width=20_000)})

    async def half() -> AsyncIterator[bytes]:
        yield body[: len(body) // 2]
        await until(lambda: coming_in(head), "that it comes in")
        head.end(signal.SIGKILL)
        yield body[len(body) // 2 :]

    with pytest.raises(httpx.TransportError):
        await sent(head, half())
    assert coming_in(head)
    await head.start()
    assert (coming_in(head), stored(head), await registered(head)) == ([], set(), set())
    assert (await sent(head, body)).status_code == 201
    assert await registered(head) == {"pirate@1"}


async def test_bytes_that_a_killed_head_had_stored_and_not_named_go_with_its_next_start(
    head: HeadProcess, tmp_path: Path
) -> None:
    head.end(signal.SIGKILL)
    contents = AdapterContents(head.data_dir / "adapters")
    nameless = contents.take_in(written(tmp_path / "lora"), FamilyLimits()).digest
    assert stored(head) == {nameless}
    await head.start()
    await until(lambda: not stored(head), "that they are gone")
    assert (await sent(head, upload("pirate"))).json()["digest"] == nameless
    assert stored(head) == {nameless}


async def test_a_crowd_that_registers_the_same_bytes_as_one_version_makes_one(
    head: HeadProcess, tmp_path: Path
) -> None:
    source = str(written(tmp_path / "lora"))
    body = {"name": "pirate", "version": "1", "base": "mini", "source": source}
    replies = await at_once(head, [body] * CROWD)
    assert Counter(r.status_code for r in replies) == {201: 1, 200: CROWD - 1}
    assert len({r.json()["registered_at"] for r in replies}) == 1
    assert (await registered(head), len(stored(head)), coming_in(head)) == ({"pirate@1"}, 1, [])


async def test_a_crowd_that_registers_the_same_bytes_by_many_names_stores_them_once(
    head: HeadProcess, tmp_path: Path
) -> None:
    source = str(written(tmp_path / "lora"))
    names = [f"pirate-{number}" for number in range(CROWD)]
    wishes = ({"name": n, "version": "1", "base": "mini", "source": source} for n in names)
    replies = await at_once(head, wishes)
    assert {r.status_code for r in replies} == {201}
    assert {r.json()["digest"] for r in replies} == stored(head)
    assert await registered(head) == {f"{name}@1" for name in names}
    assert (len(stored(head)), coming_in(head)) == (1, [])


async def test_of_a_crowd_with_other_bytes_for_one_version_one_wins_and_is_whole(
    head: HeadProcess,
) -> None:
    bodies = [upload("pirate", {**FILES, WEIGHTS_FILE: weights(width=w)}) for w in (16, 24)]
    replies = await asyncio.gather(*(sent(head, bodies[n % 2]) for n in range(CROWD)))
    found = Counter(r.status_code for r in replies)
    assert found == {201: 1, 200: CROWD // 2 - 1, 409: CROWD // 2}
    (kept,) = {r.json()["digest"] for r in replies if r.is_success}
    assert [each["digest"] for each in await head.get("adapters")] == [kept]
    await until(lambda: stored(head) == {kept}, "that the other bytes are gone")


GARBAGE = {
    bytes(range(256)) * 4000: "no multipart body",
    b"": "cut off",
    upload("x")[:-9]: "cut off",
    upload("x")[: len(upload("x")) // 2]: "cut off",
    f"--{EDGE}\r\n".encode() + b"x-header: 1\r\n" * 100_000: "no multipart body",
    f"--{EDGE}\r\nx-header: ".encode() + bytes(8 << 20): "no multipart body",
    upload("x", {"other": b"1"}): "has a part named 'other'",
}
"""Bodies, and what is said of them."""


async def test_what_is_no_upload_is_refused_and_leaves_nothing(head: HeadProcess) -> None:
    for body, why in GARBAGE.items():
        reply = await sent(head, body)
        assert (reply.status_code, why in reply.json()["detail"]) == (422, True), reply.text
        assert (coming_in(head), stored(head), await registered(head)) == ([], set(), set())


async def test_uploads_that_stop_halfway_are_in_nobodys_way(head: HeadProcess) -> None:
    body, go_on = upload("slow"), asyncio.Event()

    async def half() -> AsyncIterator[bytes]:
        yield body[:-9]
        await go_on.wait()
        yield body[-9:]

    async with asyncio.TaskGroup() as tasks:
        slow = [tasks.create_task(sent(head, half())) for _ in range(40)]
        await until(lambda: len(coming_in(head)) == len(slow), "that all have begun")
        assert (await sent(head, upload("quick"))).status_code == 201
        assert await registered(head) == {"quick@1"}
        go_on.set()
    assert Counter(s.result().status_code for s in slow) == {201: 1, 200: len(slow) - 1}
    assert await registered(head) == {"quick@1", "slow@1"}
    assert (len(stored(head)), coming_in(head)) == (1, [])
