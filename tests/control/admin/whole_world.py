"""An admin API with one of everything, and a request for each route that changes something."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import httpx

from penstock.control.admin.app import admin_app
from penstock.control.managers.write import Write
from penstock.control.state.cluster import ClusterView, Gateway, GatewayState
from penstock.control.state.fleet.replica import NodeState
from penstock.control.state.rollout.trial import Outcome
from penstock.control.state.routing.suspects import EngineDeath, Suspect
from tests.control.admin.adapters.test_adapters import PIRATE
from tests.control.admin.app_harness import Admin, client_of, running_admin
from tests.fakes.control_values import node, replica
from tests.fakes.fake_replica import DONE, delta, last_delta

API: Final = "/admin/v1"
PRINT: Final = bytes(range(32))
MINI: Final = {"engine": "simulated", "model": "penstock-mini", "max_adapters": 2}
SHADOW: Final = {"name": "smaller", "primary": "mini", "candidate": "small", "share_permille": 200}
CANARY: Final = {"name": "next", "target": "small", "candidate": "paused"}
DOCUMENT: Final = {"penstock": "v1", "kind": "tenant", "id": "said", "max_streams": 3}
ENGINE: Final = {"engine": "simulated", "model": "penstock-mini"}
RECORDING: Final = {"name": "monday", "primary": "mini"}


EVIDENCE: Final = {
    "kind": "adapter-regression",
    "passed": True,
    "at": "2026-01-01T00:00:00Z",
    "family": "penstock-mini",
    "report": {"wins": 7},
}
FOUND: Final = {"kind": "regression", "passed": True, "at": "2026-01-01T00:00:00Z"}
# What is shown alone, by its path as the document has it.
SHOWN: Final[Mapping[str, str]] = {
    "/adapters/{adapter}": "/adapters/pirate@1",
    "/adapters/{adapter}/evidence/{evidence_id}": "/adapters/pirate@1/evidence/{evidence}",
    "/aliases/{deployment}/{alias}": "/aliases/mini/pirate",
    "/canaries/{name}": "/canaries/next",
    "/deployments/{name}": "/deployments/mini",
    "/deployments/{name}/revisions/{number}": "/deployments/mini/revisions/1",
    "/deployments/{name}/revisions/{number}/evidence/{evidence_id}": (
        "/deployments/mini/revisions/1/evidence/{finding}"
    ),
    "/engines/{engine_id}": "/engines/scratch",
    "/gateways/{gateway_id}": "/gateways/gw-1",
    "/nodes/{node_id}": "/nodes/n1",
    "/quarantine/{fingerprint}": f"/quarantine/{PRINT.hex()}",
    "/recordings/{name}": "/recordings/monday",
    "/shadows/{name}": "/shadows/smaller",
    "/tenants/{tenant_id}": "/tenants/acme",
    "/tenants/{tenant_id}/keys/{key_id}": "/tenants/acme/keys/{key}",
    "/tokens/{token_id}": "/tokens/{token}",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that changes something in this world: `{}` in the path and the body are filled."""

    path: str
    body: Any = None
    of: str = ""  # what it changes, where that is not what the path ends with; "-": nothing yet
    params: Mapping[str, Any] = field(default_factory=dict)


# By method and path as the API's own document has them.
WRITES: Final[Mapping[str, Asked]] = {
    "POST /deployments": Asked("/deployments", {**MINI, "name": "new"}, "-"),
    "PUT /deployments/{name}": Asked("/deployments/mini", {**MINI, "replicas": 2}),
    "DELETE /deployments/{name}": Asked("/deployments/spare"),
    "POST /deployments/{name}/scale": Asked(
        "/deployments/mini/scale", {"replicas": 2}, "/deployments/mini"
    ),
    "PATCH /deployments/{name}/settings": Asked(
        "/deployments/mini/settings", {"max_queued": 7}, "/deployments/mini"
    ),
    "POST /deployments/{name}/rollback": Asked(
        "/deployments/spare/rollback", {"revision": 1}, "/deployments/spare"
    ),
    "POST /deployments/{name}/restart": Asked("/deployments/mini/restart", of="/deployments/mini"),
    "POST /deployments/{name}/pause": Asked("/deployments/mini/pause", of="/deployments/mini"),
    "POST /deployments/{name}/resume": Asked(
        "/deployments/paused/resume", of="/deployments/paused"
    ),
    "POST /deployments/{name}/test": Asked("/deployments/mini/test", of="/deployments/mini"),
    "PUT /deployments/{name}/revisions/{number}/evidence": Asked(
        "/deployments/mini/revisions/1/evidence", FOUND, "/deployments/mini"
    ),
    "PUT /deployment-policy": Asked("/deployment-policy", {"evidence_for": ["live"]}),
    "POST /engines": Asked("/engines", {**ENGINE, "name": "new"}, "-", {"wait": False}),
    "DELETE /engines/{engine_id}": Asked("/engines/scratch"),
    "PUT /nodes/{node_id}/drain": Asked("/nodes/n1/drain", of="/nodes/n1"),
    "DELETE /nodes/{node_id}/drain": Asked("/nodes/gone/drain", of="/nodes/gone"),
    "DELETE /nodes/{node_id}": Asked("/nodes/gone"),
    "POST /gateways/{gateway_id}/replace": Asked("/gateways/gw-1/replace", of="/gateways/gw-1"),
    "POST /adapters": Asked("/adapters", {**PIRATE, "version": "9"}, "-"),
    "DELETE /adapters/{adapter}": Asked("/adapters/pirate@2"),
    "POST /adapters/{adapter}/promote": Asked(
        "/adapters/pirate@2/promote", {"to": "canary"}, "/adapters/pirate@2"
    ),
    "POST /adapters/{adapter}/retire": Asked("/adapters/pirate@2/retire", of="/adapters/pirate@2"),
    "PUT /adapters/{adapter}/evidence": Asked(
        "/adapters/pirate@1/evidence",
        {**EVIDENCE, "digest": "{digest}"},
        "/adapters/pirate@1",
    ),
    "PUT /adapter-policy": Asked("/adapter-policy", {"evidence_for": ["live"]}),
    "PUT /aliases/{deployment}/{alias}": Asked("/aliases/mini/pirate", {"target": "pirate@1"}),
    "DELETE /aliases/{deployment}/{alias}": Asked("/aliases/mini/pirate"),
    "POST /aliases/{deployment}/{alias}/undo": Asked(
        "/aliases/mini/pirate/undo", of="/aliases/mini/pirate"
    ),
    "DELETE /quarantine/{fingerprint}": Asked(f"/quarantine/{PRINT.hex()}"),
    "POST /tenants": Asked("/tenants", {"id": "new"}, "-"),
    "PUT /tenants/{tenant_id}": Asked("/tenants/acme", {"max_streams": 3}),
    "DELETE /tenants/{tenant_id}": Asked("/tenants/acme"),
    "POST /tenants/{tenant_id}/keys": Asked("/tenants/acme/keys", {"name": "ci"}, "-"),
    "DELETE /tenants/{tenant_id}/keys/{key_id}": Asked("/tenants/acme/keys/{key}"),
    "PUT /access": Asked("/access", {"anonymous": "allowed"}),
    "POST /shadows": Asked("/shadows", {**SHADOW, "name": "new", "candidate": "spare"}, "-"),
    "POST /shadows/{name}/pause": Asked("/shadows/smaller/pause", of="/shadows/smaller"),
    "POST /shadows/{name}/resume": Asked("/shadows/asleep/resume", of="/shadows/asleep"),
    "DELETE /shadows/{name}": Asked("/shadows/smaller"),
    "POST /canaries": Asked(
        "/canaries", {"name": "new", "target": "mini", "candidate": "spare"}, "-"
    ),
    "POST /canaries/{name}/pause": Asked("/canaries/next/pause", of="/canaries/next"),
    "POST /canaries/{name}/resume": Asked("/canaries/asleep/resume", of="/canaries/asleep"),
    "POST /canaries/{name}/promote": Asked("/canaries/next/promote", of="/canaries/next"),
    "POST /canaries/{name}/abort": Asked("/canaries/next/abort", of="/canaries/next"),
    "DELETE /canaries/{name}": Asked("/canaries/ended"),
    "POST /recordings": Asked("/recordings", {**RECORDING, "name": "new", "primary": "spare"}, "-"),
    "POST /recordings/{name}/stop": Asked("/recordings/monday/stop", of="/recordings/monday"),
    "DELETE /recordings/{name}": Asked("/recordings/monday"),
    "POST /apply": Asked("/apply", {"documents": [DOCUMENT]}, "-"),
    "POST /tokens": Asked("/tokens", {"name": "ci", "role": "viewer"}, "-"),
    "DELETE /tokens/{token_id}": Asked("/tokens/{token}"),
}


class Version(NamedTuple):
    """What is stored, and what is known."""

    revision: int
    view: ClusterView


@dataclass(frozen=True, slots=True)
class World:
    """One of everything, and how to ask for a change of it."""

    admin: Admin
    client: httpx.AsyncClient
    made: Mapping[str, str]  # what `{}` stand for

    @property
    def version(self) -> Version:
        """Differs from what it was where anything was changed."""
        return Version(self.admin.cluster.stamp.revision, self.admin.cluster.view())

    async def ask(
        self, route: str, headers: Mapping[str, str] | None = None, **params: Any
    ) -> httpx.Response:
        """Sends the request of a route."""
        asked, method = WRITES[route], route.partition(" ")[0]
        body = self._filled(asked.body)
        path = API + str(self._filled(asked.path))
        params = {**asked.params, **params}
        return await self.client.request(method, path, json=body, params=params, headers=headers)

    async def tag(self, route: str) -> str:
        """The ETag of what a route changes; empty where it makes something."""
        asked = WRITES[route]
        if asked.of == "-":
            return ""
        return await self.tag_at(asked.of or asked.path)

    async def tag_at(self, path: str) -> str:
        """The ETag of what is there."""
        reply = await self.client.get(API + str(self._filled(path)))
        assert reply.status_code == 200, reply.text
        return str(reply.headers["etag"])

    def _filled(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._filled(each) for name, each in value.items()}
        if isinstance(value, str):
            for name, made in self.made.items():
                value = value.replace(f"{{{name}}}", made)
        return value


class Gateways:
    """A `GatewayReplacer` of the one that there is."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    async def replace(self, gateway_id: str, write: Write) -> Gateway:
        known = self._admin.cluster.view().gateways[gateway_id]
        write.check(known, gateway_id)
        return known if write.dry_run else replace(known, id=f"{gateway_id}.2")


@asynccontextmanager
async def whole_world() -> AsyncIterator[World]:
    """One of everything."""
    async with running_admin() as admin:
        services = replace(admin.services, gateways=Gateways(admin))
        async with client_of(admin_app(services, "1")) as client:
            yield World(admin, client, await _filled(admin, client))


async def _filled(admin: Admin, client: httpx.AsyncClient) -> Mapping[str, str]:
    async def have(method: str, path: str, body: Any = None) -> Any:
        reply = await client.request(method, API + path, json=body)
        assert reply.is_success, (path, reply.text)
        return reply.json()

    for name, model in (
        *(("mini", "penstock-mini"), ("small", "tiny"), ("paused", "tiny")),
        *(("spare", "penstock-mini"), ("spare", "tiny")),
    ):
        await have("PUT", f"/deployments/{name}", {**MINI, "model": model})
    await have("POST", "/deployments/paused/pause")
    await admin.cluster.observe(_seen, "test")
    await have("POST", "/engines?wait=false", {**ENGINE, "name": "scratch"})
    admin.replicas.answer = Outcome(delta("Hello") + last_delta() + DONE)
    adapters = [await have("POST", "/adapters", {**PIRATE, "version": v}) for v in ("1", "2", "3")]
    for target in ("pirate@1", "pirate@3"):
        await have("PUT", "/aliases/mini/pirate", {"target": target})
    await have("POST", "/tenants", {"id": "acme"})
    key = await have("POST", "/tenants/acme/keys", {"name": "ci"})
    await have("POST", "/shadows", SHADOW)
    await have("POST", "/shadows", {**SHADOW, "name": "asleep", "candidate": "paused"})
    await have("POST", "/shadows/asleep/pause")
    await _canaries(have)
    await have("POST", "/recordings", RECORDING)
    token = await have("POST", "/tokens", {"name": "bob", "role": "viewer"})
    digest = adapters[0]["digest"]
    found = await have("PUT", "/adapters/pirate@1/evidence", {**EVIDENCE, "digest": digest})
    finding = await have("PUT", "/deployments/mini/revisions/1/evidence", FOUND)
    return {
        "finding": finding["id"],
        "key": key["id"],
        "token": token["id"],
        "digest": digest,
        "evidence": found["id"],
    }


async def _canaries(have: Callable[..., Awaitable[Any]]) -> None:
    """One that goes on, one that is paused, and one that has ended."""
    await have("POST", "/canaries", {**CANARY, "name": "ended"})
    await have("POST", "/canaries/ended/abort")
    await have("POST", "/canaries", CANARY)
    await have("PUT", "/aliases/mini/calm", {"target": "pirate@3"})
    asleep = {"name": "asleep", "target": "mini:calm", "candidate": "pirate@1"}
    await have("POST", "/canaries", asleep)
    await have("POST", "/canaries/asleep/pause")


def _seen(view: ClusterView) -> ClusterView:
    """What the head was told: a replica that is ready, its node, one that is gone, a gateway, and a
    request that engines died of."""
    mini = view.deployment("mini")
    deaths = (EngineDeath("r1", 1_000, "gw-1"), EngineDeath("r2", 90_000, "gw-1"))
    suspect = Suspect(PRINT, "mini", mini.uid, "/v1/completions", deaths, 5_000)
    gone = replace(node("gone", NodeState.LOST), draining=True)
    view = view.with_replica(replica("r1", uid=mini.uid, digest=mini.template_digest))
    view = view.with_node(node("n1")).with_node(gone)
    view = view.with_gateway(Gateway("gw-1", GatewayState.READY, pid=7))
    return replace(view, suspects={PRINT: suspect})
