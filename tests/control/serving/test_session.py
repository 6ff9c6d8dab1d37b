"""The steps of `penstock serve` against an admin API that has its bad moments."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from penstock.control.admin.models import (
    DeploymentModel,
    GatewayModel,
    NodeModel,
    ReplicaModel,
    SpecModel,
)
from penstock.control.errors import CannotStart, Unavailable
from penstock.control.serving.children import Child
from penstock.control.serving.options import ServeOptions
from penstock.control.serving.session import Session
from tests.control.serving.pictures import gateway
from tests.fakes.control_clock import ManualClock
from tests.fakes.control_launcher import FakeLauncher


class Admin:
    """An admin API without deployments."""

    def __init__(self) -> None:
        self.shown = [gateway(state="starting")]
        self.asked = asyncio.Event()
        self.refusals = 0
        self.spec: SpecModel | None = None
        self.deployed = asyncio.Event()

    async def deployments(self) -> list[DeploymentModel]:
        return []

    async def replicas(self) -> list[ReplicaModel]:
        return []

    async def nodes(self) -> list[NodeModel]:
        return []

    async def gateways(self) -> list[GatewayModel]:
        self.asked.set()
        return self.shown

    async def put_deployment(self, name: str, spec: SpecModel) -> None:
        if self.refusals:
            self.refusals -= 1
            raise Unavailable("the head stops: ask again")
        self.spec = spec
        self.deployed.set()

    async def delete_deployment(self, name: str) -> None:
        raise AssertionError("nothing was served last time")


class Gateway:
    """The OpenAI API of a gateway that has nothing yet."""

    async def models(self) -> list[str]:
        return []

    async def ask(self, model: str) -> None:
        raise AssertionError("there is no model to ask")


class Shown:
    """Where nobody looks."""

    def done(self, text: str) -> None:
        pass

    def progress(self, what: str, *, seconds: float, detail: str = "") -> None:
        pass

    def event(self, text: str) -> None:
        pass

    def text(self, text: str) -> None:
        pass


class Serving:
    """A session with its children, as `penstock serve` runs them."""

    def __init__(self, folder: Path, tasks: asyncio.TaskGroup) -> None:
        self.admin = Admin()
        self.heads = FakeLauncher()
        self.heads.log = "penstock head: error: there is no gateway\n"
        options = ServeOptions(
            "mini", "mini", folder, engine="simulated", settings={"max_queued": 7}
        )
        head = Child("head", [], folder / "head.log", self.heads, ManualClock(), print)
        nodes = FakeLauncher()
        node = Child("node agent", [], folder / "node.log", nodes, ManualClock(), print)
        session = Session(options, self.admin, Gateway(), Shown(), head, node)
        self._running = [
            tasks.create_task(head.keep_running()),
            tasks.create_task(node.keep_running()),
            tasks.create_task(session.run()),
        ]

    def end(self) -> None:
        for task in self._running:
            task.cancel()


async def head_that_answers_and_ends(folder: Path) -> None:
    """As one does that finds that its gateway cannot run."""
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        serving = Serving(folder, tasks)
        await serving.admin.asked.wait()
        serving.heads.started[0].end(1)


async def test_a_head_that_answers_and_then_finds_no_gateway_has_not_worked(tmp_path: Path) -> None:
    with pytest.raises(ExceptionGroup) as caught:
        await head_that_answers_and_ends(tmp_path)
    assert caught.group_contains(CannotStart, match="there is no gateway")


async def test_what_a_head_that_stops_refused_is_asked_again(tmp_path: Path) -> None:
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        serving = Serving(tmp_path, tasks)
        serving.admin.refusals = 2
        serving.admin.shown = [gateway()]
        await serving.admin.deployed.wait()
        serving.end()
    assert serving.admin.spec is not None
    assert (serving.admin.spec.max_queued, serving.admin.spec.max_n) == (7, 16)
