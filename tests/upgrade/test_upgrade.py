"""Each part of a running system is brought from the state of `BASE` to today's and back, in every
mix of the two, under load: no request fails, no answer is another, nothing written is lost.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.e2e.apart import GATEWAY, ROOT, Apart
from tests.e2e.sound_traffic import Asker, asking
from tests.e2e.system import eventually
from tests.upgrade.building import built

# Each letter changes one part, head, gateway, agent or replicas, from one state to the other. An
# agent starts replicas of its own state alone; with that, each of the 16 mixes comes once.
WALK = "hghahghrhghahghr"
log = logging.getLogger(__name__)


@pytest.fixture(scope="module")
def trees() -> tuple[Path, Path]:
    """The checkouts of `BASE` and of today."""
    return built(), ROOT


@pytest.fixture
def system(trees: tuple[Path, Path], tmp_path: Path) -> Iterator[Apart]:
    """All of it of `BASE`."""
    apart = Apart(tmp_path)
    try:
        apart.begin(trees[0])
        yield apart
    finally:
        apart.destroy()


class Writes:
    """What an operator changes all the while, and what has to stand ever after."""

    def __init__(self, system: Apart) -> None:
        self._system = system
        self._count = 0
        self._tenants: dict[str, int] = {}

    async def go_on(self, over: asyncio.Event) -> None:
        """One change after another, each until the head has taken it."""
        while not over.is_set():
            self._count += 1
            await asyncio.to_thread(self._write, f"tenant-{self._count}", self._count)
            await asyncio.sleep(0.2)

    def check(self) -> None:
        """Fails where anything is not as it was written."""
        found = {each["id"]: each["requests_per_minute"] for each in self._listed()}
        written = dict(self._tenants)
        lost = {name: limit for name, limit in written.items() if found.get(name) != limit}
        assert not lost, f"{len(lost)} of {len(written)} are lost: {lost}"

    def _listed(self) -> list[Any]:
        return list(eventually(lambda: self._system.admin("tenants"), within=30, what="tenants"))

    def _write(self, name: str, limit: int) -> None:
        body = {"requests_per_minute": limit}
        eventually(lambda: self._put(f"tenants/{name}", body), within=60, what="a head that writes")
        self._tenants[name] = limit

    def _put(self, path: str, body: dict[str, int]) -> bool:
        return bool(self._system.change("PUT", path, body))


class Walk:
    """The way of a system through all mixes."""

    def __init__(self, system: Apart, trees: tuple[Path, Path]) -> None:
        self.seen: list[str] = []
        self._system = system
        self._trees = trees
        self._state = dict.fromkeys("hgar", 0)
        self._look()

    def step(self, part: str) -> None:
        """Changes one part; returns when all is well again."""
        state = self._state[part] = 1 - self._state[part]
        tree, before = self._trees[state], self._parts()
        {"h": self._head, "g": self._gateway, "a": self._agent, "r": self._replicas}[part](tree)
        self._system.wait_whole()
        self._look()
        changed = {name for name, pids in self._parts().items() if pids != before[name]}
        assert changed <= {part}, f"{changed} changed with {part}"

    def _head(self, tree: Path) -> None:
        self._system.end("head")
        self._system.start_head(tree)

    def _gateway(self, tree: Path) -> None:
        self._system.use_gateway(tree)
        (old,) = self._system.admin("gateways")
        self._system.change("POST", f"gateways/{old['id']}/replace")

    def _agent(self, tree: Path) -> None:
        self._system.end("node")
        self._system.start_node(tree)

    def _replicas(self, _: Path) -> None:
        self._system.change("POST", "deployments/sim/restart")

    def _parts(self) -> dict[str, set[int]]:
        return {"g": {self._system.gateway()}, "r": self._system.replicas()}

    def _look(self) -> None:
        """Each process has to be of the state that it is said to be of."""
        gateway = Path(psutil.Process(self._system.gateway()).exe())
        assert gateway == (self._trees[self._state["g"]] / GATEWAY).resolve()
        home = str(self._trees[self._state["r"]] / ".venv")
        for pid in self._system.replicas():
            assert psutil.Process(pid).cmdline()[0].startswith(home)
        self.seen.append("".join("bt"[self._state[part]] for part in "hgar"))


def askers(key: str) -> list[Asker]:
    """Streams and whole answers, on connections old and new, of an adapter, with a key."""
    kinds = [(stream, keeps) for stream in (True, False) for keeps in (True, False)]
    plain = [Asker("sim", stream, keeps) for stream, keeps in kinds * 2]
    pirate = [Asker("sim:pirate", stream, True) for stream in (True, False)]
    return [*plain, *pirate, Asker("sim", False, True, key, tokens=2)]


def counts(system: Apart, answers: int) -> bool:
    """Whether the tenant's requests are written down, each once."""
    found = system.admin("tenants/counted/usage")["total"]["requests"]
    if found != answers:
        raise ValueError(f"{found} of {answers} are written down")
    return True


@pytest.mark.long
@pytest.mark.timeout(1800)
async def test_every_part_is_upgraded_and_brought_back_without_a_request_that_fails(
    system: Apart, trees: tuple[Path, Path]
) -> None:
    key = await asyncio.to_thread(system.prepare)
    writes, walk, over = Writes(system), Walk(system, trees), asyncio.Event()
    async with asking(system.base_url, askers(key)) as all_of_them, asyncio.TaskGroup() as group:
        group.create_task(writes.go_on(over))
        for part in WALK:
            await asyncio.to_thread(all_of_them.some_more)
            await asyncio.to_thread(walk.step, part)
            await asyncio.to_thread(writes.check)
            log.warning("%s: %d answers", walk.seen[-1], all_of_them.answers)
        over.set()
    await asyncio.to_thread(writes.check)
    assert (len(set(walk.seen)), walk.seen[0]) == (16, walk.seen[-1])
    counted = all_of_them.each[-1].answers
    await asyncio.to_thread(eventually, lambda: counts(system, counted), within=10, what="counts")
