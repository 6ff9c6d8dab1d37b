"""A deployment whose requests are repeated on another one, and who compares the answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from penstock.v1 import routes_pb2 as routes
from penstock.v1 import shadow_pb2 as shadow
from tests.fakes.fake_comparer import FakeComparer
from tests.fakes.fake_control import deployment, route
from tests.fakes.fake_replica import FakeReplica, Script, hello
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import Start, System

UID = "uid-1"


def rule(**fields: object) -> routes.ShadowRule:
    """All requests of `mini` go to `next` as well, unless `fields` say otherwise."""
    told = {
        "uid": UID,
        "name": "next",
        "primary": "mini",
        "candidate": "next",
        "seed": 7,
        "share_permille": 1000,
        "max_concurrent": 4,
        "cache_salt": "salt",
    }
    return routes.ShadowRule(**(told | fields))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Shadowed:
    """`mini` is served by the first replica, `next` by the second."""

    system: System
    comparer: FakeComparer

    @property
    def mini(self) -> FakeReplica:
        """Who answers clients."""
        return self.system.replicas[0]

    @property
    def next(self) -> FakeReplica:
        """Who answers once more."""
        return self.system.replicas[1]

    async def publish(
        self,
        told: routes.ShadowRule,
        *,
        candidate: routes.DeploymentRoute | None = None,
        tenants: Iterable[routes.Tenant] = (),
        compares: bool = True,
    ) -> None:
        """In force when this returns."""
        version = await self.system.control.publish(
            [deployment(), candidate or deployment("next")],
            [route(self.mini), route(self.next, of="next")],
            tenants=tenants,
            shadows=[told],
            comparer_address=self.comparer.address if compares else "",
        )
        await self.system.has_routes(version)

    async def pairs(self, count: int) -> list[shadow.ShadowPair]:
        """Those that have come, once there are so many."""
        await until(lambda: len(self.comparer.pairs) >= count, f"{count} pairs")
        return self.comparer.pairs

    async def counted(self, outcome: str, count: int) -> None:
        """Waits until so many shadows have come to that."""
        name = "penstock_gateway_shadow_requests_total"
        while await self.system.metric(name, uid=UID, outcome=outcome) < count:
            await self.system.ask_status("/livez")


@asynccontextmanager
async def shadowed(
    start: Start,
    *flags: str,
    told: routes.ShadowRule | None = None,
    scripts: tuple[Script, Script] = (hello, hello),
    candidate: routes.DeploymentRoute | None = None,
    tenants: Iterable[routes.Tenant] = (),
    compares: bool = True,
) -> AsyncIterator[Shadowed]:
    """A gateway before all of these."""
    async with FakeComparer() as comparer:
        made = Shadowed(await start(*flags, scripts=scripts), comparer)
        await made.publish(told or rule(), candidate=candidate, tenants=tenants, compares=compares)
        yield made
