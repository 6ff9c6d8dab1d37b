"""A deployment that cannot answer, and those that its ladder names."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from penstock.v1 import common_pb2 as common
from penstock.v1 import inference_pb2 as inference
from penstock.v1 import routes_pb2 as routes
from penstock.v1 import suspects_pb2
from tests.fakes.fake_control import deployment, route
from tests.fakes.fake_replica import FakeCall, FakeReplica, Script, hello, unary_chat
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.held import Held, busy, narrow_limits
from tests.gateway_cpp.blackbox.raw_http import Response

READY = inference.REPLICA_STATE_READY
ANY = {"": ["trim", "fallback:big", "fallback:canned"]}


def failing(
    status: int, code: str, *, fault: common.Fault = common.FAULT_UPSTREAM, param: str = ""
) -> Script:
    """A script that fails each call, and for which no other replica is to be tried."""
    error = common.ErrorDetail(
        status=status, type="server_error", code=code, message=f"{code}!", param=param, fault=fault
    )

    async def script(call: FakeCall) -> None:
        await call.fail(error)

    return script


engine_dies = failing(503, "engine_dead")
too_long = failing(400, "context_length_exceeded", fault=common.FAULT_CLIENT, param="messages")


async def trimming(call: FakeCall) -> None:
    """Refuses what is too long, unless it may trim it."""
    if not call.request.trim:
        return await too_long(call)
    call.facts = inference.Head(trimmed_messages=3, trimmed_tokens=812)
    await hello(call)


async def breaks_off(call: FakeCall) -> None:
    """Sends half of its answer."""
    await call.send(unary_chat("Hello")[:20])
    await failing(500, "internal_error")(call)


@dataclass(frozen=True, slots=True)
class Fleet:
    """`mini`, which `r1` serves; `big`, which `r2` does, and `canned`, which is managed: `r3`."""

    system: System
    mini: routes.DeploymentRoute

    @property
    def replicas(self) -> tuple[FakeReplica, FakeReplica, FakeReplica]:
        """By their deployments."""
        mini, big, canned = self.system.replicas
        return mini, big, canned

    async def publish(
        self,
        mini: routes.DeploymentRoute,
        *,
        big: routes.DeploymentRoute | None = None,
        state: inference.ReplicaState = READY,
        tenants: Iterable[routes.Tenant] = (),
        suspects: Iterable[suspects_pb2.Suspect] = (),
    ) -> None:
        """These routes are in force when this returns; `state`: of mini's replica."""
        r1, r2, r3 = self.replicas
        version = await self.system.control.publish(
            [mini, big or deployment("big"), deployment("canned", managed=True)],
            [route(r1, state=state), route(r2, of="big"), route(r3, of="canned")],
            tenants=tenants,
            suspects=suspects,
        )
        await self.system.has_routes(version)


async def fleet(
    start: Start,
    *flags: str,
    mini: routes.DeploymentRoute,
    scripts: tuple[Script, Script, Script] = (hello, hello, hello),
    state: inference.ReplicaState = READY,
    big: routes.DeploymentRoute | None = None,
    tenants: Iterable[routes.Tenant] = (),
) -> Fleet:
    """A gateway before it."""
    system = await start(*flags, scripts=scripts, tenants=tenants)
    made = Fleet(system, mini)
    await made.publish(mini, state=state, big=big, tenants=tenants)
    return made


def is_from(answer: Response, backend: str, reason: str) -> None:
    """The answer is whole, and says by whom and why."""
    assert answer.status == 200, answer
    assert not answer.cut_off
    assert answer.headers["x-penstock-backend"] == backend
    assert answer.headers["x-penstock-degraded"] == reason
    assert "x-penstock-drop-reason" not in answer.headers


def laddered(
    ladders: dict[str, list[str]] | None = None, **limits: float
) -> routes.DeploymentRoute:
    """`mini`, which takes one call at a time and lets nobody wait, unless `limits` say more."""
    told = narrow_limits(0)
    for name, value in limits.items():
        setattr(told, name, value)
    return deployment(ladders=ANY if ladders is None else ladders, limits=told)


@asynccontextmanager
async def full(
    start: Start,
    *flags: str,
    mini: routes.DeploymentRoute | None = None,
    answers: tuple[Script, Script] = (hello, hello),
    big: routes.DeploymentRoute | None = None,
    tenants: Iterable[routes.Tenant] = (),
) -> AsyncIterator[tuple[Fleet, Held]]:
    """A fleet whose `mini` has no place until `Held` lets go; `answers`: what the others do."""
    held = Held()
    scripts = (held, *answers)
    route = mini or laddered()
    made = await fleet(start, *flags, mini=route, scripts=scripts, big=big, tenants=tenants)
    async with busy(made.system):
        yield made, held
        held.let_go(1000)
