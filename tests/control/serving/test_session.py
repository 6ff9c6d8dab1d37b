"""The steps of `penstock serve` against an admin API that has its bad moments."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.control.admin.adapters.alias_models import AliasModel
from penstock.control.admin.adapters.models import AdapterModel
from penstock.control.admin.rollout.models import (
    DeploymentModel,
    GatewayModel,
    NodeModel,
    ReplicaModel,
    SpecModel,
    StatusModel,
)
from penstock.control.admin.version_models import VersionModel
from penstock.control.errors import CannotStart, InvalidInput, Unavailable
from penstock.control.serving.children import Child
from penstock.control.serving.options import Adapter, ServeOptions
from penstock.control.serving.session import Session
from penstock.control.state.rollout.trial import Question
from tests.control.serving.pictures import gateway
from tests.fakes.control_clock import ManualClock
from tests.fakes.control_launcher import FakeLauncher


class Admin:
    """An admin API without deployments."""

    def __init__(self) -> None:
        self.shown = [gateway(state="starting")]
        self.held = ""
        self.asked = asyncio.Event()
        self.refusals = 0
        self.spec: SpecModel | None = None
        self.stored: DeploymentModel | None = None
        self.deployed = asyncio.Event()
        self.removed: set[str] = set()
        self.known: dict[str, str] = {}  # aliases and what they name
        self.registered: list[tuple[str, str, str]] = []
        self.named: list[tuple[str, str]] = []

    async def version(self) -> VersionModel:
        return VersionModel.model_construct(held=self.held)

    async def deployments(self) -> list[DeploymentModel]:
        return []

    async def replicas(self) -> list[ReplicaModel]:
        return []

    async def nodes(self) -> list[NodeModel]:
        return []

    async def gateways(self) -> list[GatewayModel]:
        self.asked.set()
        return self.shown

    async def deployment(self, name: str) -> DeploymentModel | None:
        return self.stored

    async def put_deployment(
        self, name: str, spec: SpecModel, *, over: DeploymentModel | None
    ) -> DeploymentModel:
        if self.refusals:
            self.refusals -= 1
            raise Unavailable("the head stops: ask again")
        assert over is self.stored
        self.spec = spec
        self.deployed.set()
        return DeploymentModel.model_construct(status=StatusModel.model_construct(rollout=None))

    async def delete_deployment(self, name: str) -> None:
        raise AssertionError("nothing was served last time")

    async def register_adapter(
        self, name: str, version: str, base: str, source: str, labels: Mapping[str, str]
    ) -> tuple[AdapterModel, bool]:
        if f"{name}@{version}" in self.removed:
            raise InvalidInput(f"{name}@{version} was removed")
        self.registered.append((f"{name}@{version}", base, source))
        return AdapterModel.model_construct(), True

    async def aliases(self, deployment: str | None = None) -> list[AliasModel]:
        return [AliasModel.model_construct(alias=a, target=t) for a, t in self.known.items()]

    async def put_alias(self, deployment: str, alias: str, spec: Mapping[str, Any]) -> AliasModel:
        self.named.append((f"{deployment}:{alias}", spec["target"]))
        return AliasModel.model_construct()


class Gateway:
    """The OpenAI API of a gateway that has nothing yet."""

    async def models(self) -> list[str]:
        return []

    async def ready(self) -> bool:
        raise AssertionError("no key is asked for")

    async def ask(self, question: Question) -> None:
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

    def __init__(
        self,
        folder: Path,
        tasks: asyncio.TaskGroup,
        adapters: tuple[Adapter, ...] = (),
        admin: Admin | None = None,
    ) -> None:
        self.admin = admin or Admin()
        self.heads = FakeLauncher()
        self.heads.log = "penstock head: error: there is no gateway\n"
        options = ServeOptions(
            "mini", "mini", folder, "simulated", adapters=adapters, settings={"max_queued": 7}
        )
        head = Child("head", [], folder / "head.log", self.heads, ManualClock(), print)
        self.nodes = FakeLauncher()
        node = Child("node agent", [], folder / "node.log", self.nodes, ManualClock(), print)
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


async def under_a_head_that_holds_still(folder: Path) -> None:
    admin = Admin()
    admin.held = "node n1 knows a later state: start it once with --take-over"
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        Serving(folder, tasks, admin=admin)


async def test_a_head_that_holds_still_is_one_clear_line_at_once(tmp_path: Path) -> None:
    with pytest.raises(ExceptionGroup) as caught:
        await under_a_head_that_holds_still(tmp_path)
    assert caught.group_contains(CannotStart, match="holds still: .*--take-over")


async def test_what_a_head_that_stops_refused_is_asked_again(tmp_path: Path) -> None:
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        serving = Serving(tmp_path, tasks)
        serving.admin.refusals = 2
        serving.admin.shown = [gateway()]
        await serving.admin.deployed.wait()
        serving.end()
    assert serving.admin.spec is not None
    assert (serving.admin.spec.max_queued, serving.admin.spec.max_n) == (7, 16)


PIRATE = Adapter("pirate", "pirate@1", "penstock-mini/pirate", comes_along=True)
SQL = Adapter("sql", "sql@2", "/lora")


async def offered(folder: Path, admin: Admin, *adapters: Adapter) -> Admin:
    """What a session with these adapters asks of the admin API before the node starts."""
    async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
        admin.shown = [gateway()]
        serving = Serving(folder, tasks, adapters, admin)
        while not serving.nodes.started:
            await asyncio.sleep(0)
        serving.end()
    return admin


async def test_adapters_are_registered_and_named_before_a_replica_is_started(
    tmp_path: Path,
) -> None:
    admin = await offered(tmp_path, Admin(), PIRATE, SQL)
    assert admin.registered == [
        ("pirate@1", "mini", "penstock-mini/pirate"),
        ("sql@2", "mini", "/lora"),
    ]
    assert admin.named == [("mini:pirate", "pirate@1"), ("mini:sql", "sql@2")]
    assert admin.spec is not None
    assert admin.spec.max_adapters == 4


async def test_an_alias_that_was_moved_stays_unless_it_is_asked_for(tmp_path: Path) -> None:
    admin = Admin()
    admin.known = {"pirate": "pirate@2", "sql": "sql@9"}
    await offered(tmp_path, admin, PIRATE, SQL)
    assert admin.named == [("mini:sql", "sql@2")]


async def test_an_adapter_that_comes_along_and_was_removed_is_left_out(tmp_path: Path) -> None:
    admin = Admin()
    admin.removed = {"pirate@1"}
    await offered(tmp_path, admin, PIRATE, SQL)
    assert admin.named == [("mini:sql", "sql@2")]


async def test_an_adapter_that_was_asked_for_and_cannot_be_is_told(tmp_path: Path) -> None:
    admin = Admin()
    admin.removed = {"pirate@1"}
    with pytest.raises(ExceptionGroup) as caught:
        await offered(tmp_path, admin, replace(PIRATE, comes_along=False))
    assert caught.group_contains(CannotStart, match="pirate@1 was removed")
