"""An admin API with a node, where engines are looked after; what becomes of them, tests say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import httpx

from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import (
    Replica,
    ReplicaStart,
    ReplicaState,
    StartKind,
    StartStage,
)
from tests.control.admin.app_harness import Admin, running_admin
from tests.fakes.control_values import node
from tests.fakes.control_values import replica as replica_of
from tests.fakes.control_waiting import eventually

URL = "/admin/v1/engines"
MODEL: Mapping[str, Any] = {"engine": "simulated", "model": "penstock-mini"}
WARM = ReplicaStart(StartKind.WARM, stages=(StartStage("claim", 12), StartStage("load", 200)))


@dataclass(frozen=True, slots=True)
class Engines:
    """The API, and what happens to engines."""

    admin: Admin

    async def post(
        self, *, headers: Mapping[str, str] | None = None, wait: bool = False, **said: Any
    ) -> httpx.Response:
        """The answer to somebody who asks for an engine."""
        params = {} if wait else {"wait": "false"}
        body = {**MODEL, **said}
        return await self.admin.client.post(URL, json=body, params=params, headers=headers)

    async def started(self, **said: Any) -> dict[str, Any]:
        """An engine that was just begun."""
        reply = await self.post(**said)
        assert reply.status_code == 202, reply.text
        found: dict[str, Any] = reply.json()
        return found

    async def get(self, path: str) -> httpx.Response:
        return await self.admin.client.get(f"/admin/v1/{path}")

    async def names(self) -> list[str]:
        """Of all engines."""
        return [each["name"] for each in (await self.get("engines")).json()]

    async def is_there(self, name: str) -> None:
        """Returns once it is."""

        async def look() -> bool:
            return name in self.admin.cluster.view().deployments

        await eventually(look, f"engine {name}")

    async def is_gone(self, name: str) -> None:
        """Returns once it is."""

        async def look() -> bool:
            return name not in self.admin.cluster.view().deployments

        await eventually(look, f"no engine {name}")

    async def replica(self, name: str, state: ReplicaState, **said: Any) -> None:
        """Its replica is in this state; `said`: of what else its agent tells."""
        crashes = said.pop("crashes", 0)

        def step(view: ClusterView) -> ClusterView:
            known = view.deployment(name)
            one: Replica = replica_of(
                "r1", state, uid=known.uid, digest=known.template_digest, deployment=name
            )
            status = replace(one.status, **said)
            return view.with_replica(replace(one, status=status, crashes=crashes))

        await self.admin.cluster.observe(step, "test")


@asynccontextmanager
async def running_engines(*, nodes: int = 1) -> AsyncIterator[Engines]:
    """No engine so far."""
    async with running_admin() as admin, asyncio.TaskGroup() as tasks:
        for number in range(nodes):
            one = node(f"n{number}")
            await admin.cluster.observe(lambda view, one=one: view.with_node(one), "test")  # type: ignore[misc]
        loops = [tasks.create_task(admin.services.engines.run())]
        loops.append(tasks.create_task(admin.services.routes.run()))
        await admin.services.routes.open()
        admin.services.engines.open()
        yield Engines(admin)
        for loop in loops:
            loop.cancel()
