"""The admin REST API as a client sees it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta

import httpx

from penstock.control.admin.fit_models import MemoryFitModel
from penstock.control.admin.observe.target_models import ScrapeTargetModel
from penstock.control.admin.rollout.deployment_settings import SettingsModel
from penstock.control.admin.rollout.models import (
    CreatedTokenModel,
    DeploymentModel,
    GatewayModel,
    NodeModel,
    ReplicaModel,
    SpecModel,
    TokenModel,
)
from penstock.control.admin.rollout.trial_models import TrialModel
from penstock.control.admin.routing.quarantine_models import SuspectModel
from penstock.control.admin.status_models import ClusterStatusModel
from penstock.control.admin.tenancy.spend_models import SpendModel
from penstock.control.admin.version_models import VersionModel
from penstock.control.errors import NotFound
from penstock.control.outside.adapter_client import AdapterClient
from penstock.control.outside.admin_transport import TIMEOUT, quote, token_in
from penstock.control.outside.apply_client import ApplyClient
from penstock.control.outside.canary_client import CanaryClient
from penstock.control.outside.engine_client import EngineClient
from penstock.control.outside.event_client import EventClient
from penstock.control.outside.recording_client import RecordingClient
from penstock.control.outside.request_client import RequestClient
from penstock.control.outside.rollout_client import RolloutClient, reason_header
from penstock.control.outside.shadow_client import ShadowClient
from penstock.control.outside.tenant_client import TenantClient
from penstock.control.state.tenancy.tokens import Role

# The head gives a new gateway half a minute to work.
REPLACE_TIMEOUT = timedelta(seconds=45)
# A replica has a minute and a half to answer.
TEST_TIMEOUT = timedelta(seconds=100)
# An agent has ten seconds.
FIT_TIMEOUT = timedelta(seconds=20)
# It asks one agent after the other where a replica is gone.
LOG_TIMEOUT = 60.0  # seconds


class AdminClient(
    TenantClient,
    AdapterClient,
    ApplyClient,
    ShadowClient,
    CanaryClient,
    RecordingClient,
    RolloutClient,
    EngineClient,
    EventClient,
    RequestClient,
):
    """Every resource of the API; how calls fail, `AdminTransport` says."""

    async def version(self) -> VersionModel:
        """Which Penstock answers, and whether it is in command."""
        return await self.get(VersionModel, "/version")

    async def status(self) -> ClusterStatusModel:
        """What is wrong now."""
        return await self.get(ClusterStatusModel, "/status")

    async def scrape_targets(self) -> list[ScrapeTargetModel]:
        """Where Prometheus finds whose metrics."""
        return await self.pages_of("scrape-targets", ScrapeTargetModel, lambda it: it.targets[0])

    async def deployments(self) -> list[DeploymentModel]:
        """Every deployment with its status."""
        return await self.pages_of("deployments", DeploymentModel, lambda it: it.name)

    async def replicas(self, **those: str) -> list[ReplicaModel]:
        """Every replica, or `those` of a deployment."""
        return await self.pages_of("replicas", ReplicaModel, lambda it: it.id, **those)

    async def nodes(self) -> list[NodeModel]:
        """Every node."""
        return await self.pages_of("nodes", NodeModel, lambda it: it.id)

    async def fit(
        self, node: str, model: str, engine_args: Sequence[str], **counts: int
    ) -> MemoryFitModel:
        """What a replica of a model would take on a node."""
        asked = {"model": model, "engine_arg": list(engine_args), **counts}
        path, limit = f"/nodes/{quote(node)}/fit", FIT_TIMEOUT.total_seconds()
        return await self.get(MemoryFitModel, path, params=asked, timeout=limit)

    async def gateways(self) -> list[GatewayModel]:
        """Every gateway."""
        return await self.pages_of("gateways", GatewayModel, lambda it: it.id)

    def replica_log(self, replica_id: str, **asked: int | bool) -> AsyncIterator[bytes]:
        """What a replica wrote; where it is followed, it may be silent for as long as it likes."""
        path, known = f"/replicas/{quote(replica_id)}/logs", TIMEOUT.total_seconds()
        patience = httpx.Timeout(known, read=None if asked.get("follow") else LOG_TIMEOUT)
        return self.download(path, params=asked, timeout=patience)

    def logs(self, **asked: str | int | bool) -> AsyncIterator[bytes]:
        """What all processes wrote, an object on each line."""
        known = TIMEOUT.total_seconds()
        patience = httpx.Timeout(known, read=None if asked.get("follow") else LOG_TIMEOUT)
        return self.download("/logs", params=asked, timeout=patience)

    async def deployment(self, name: str) -> DeploymentModel | None:
        """One deployment; None where there is none of this name."""
        try:
            return await self.get(DeploymentModel, f"/deployments/{quote(name)}")
        except NotFound:
            return None

    async def put_deployment(
        self,
        name: str,
        spec: SpecModel,
        *,
        over: DeploymentModel | None,
        reason: str = "",
        abort_canary: bool = False,
        hand_over: bool = False,
    ) -> DeploymentModel:
        """Creates a deployment, or makes `over`, as it was read, what this spec says."""
        match = {"if-match": f"{over.generation}-{over.uid}"} if over else {"if-none-match": "*"}
        headers: dict[str, str | bytes] = {**match, **reason_header(reason)}
        path, body = f"/deployments/{quote(name)}", spec.model_dump()
        params = {"abort_canary": abort_canary, "hand_over": hand_over}
        return await self.put(DeploymentModel, path, json=body, params=params, headers=headers)

    async def scale(
        self, name: str, replicas: int, *, reason: str = "", hand_over: bool = False
    ) -> DeploymentModel:
        """Changes how many replicas a deployment is to have."""
        path, body = f"/deployments/{quote(name)}/scale", {"replicas": replicas}
        params, headers = {"hand_over": hand_over}, reason_header(reason)
        return await self.post(DeploymentModel, path, json=body, params=params, headers=headers)

    async def change_settings(
        self, name: str, settings: SettingsModel, *, reason: str = "", abort_canary: bool = False
    ) -> DeploymentModel:
        """Changes those settings of a deployment that `settings` names."""
        path = f"/deployments/{quote(name)}/settings"
        body, headers = settings.model_dump(exclude_unset=True), reason_header(reason)
        params = {"abort_canary": abort_canary}
        return await self.answer(
            DeploymentModel, "PATCH", path, json=body, params=params, headers=headers
        )

    async def delete_deployment(self, name: str, *, abort_canary: bool = False) -> None:
        """Deletes a deployment; its replicas drain and stop."""
        params = {"abort_canary": abort_canary}
        await self.call("DELETE", f"/deployments/{quote(name)}", params=params)

    async def spend(self, name: str) -> SpendModel:
        """What a deployment spent today and before."""
        return await self.get(SpendModel, f"/deployments/{quote(name)}/spend")

    async def test(self, name: str) -> TrialModel:
        """Sends one small real request to a replica of a deployment."""
        path = f"/deployments/{quote(name)}/test"
        return await self.post(TrialModel, path, timeout=TEST_TIMEOUT.total_seconds())

    async def tokens(self) -> list[TokenModel]:
        """Every token, without the tokens themselves."""
        return await self.pages_of("tokens", TokenModel, lambda it: it.id)

    async def create_token(self, name: str, role: Role) -> CreatedTokenModel:
        """Makes a token; the answer alone has it."""
        return await self.post(CreatedTokenModel, "/tokens", json={"name": name, "role": role})

    async def revoke_token(self, token_id: str) -> None:
        """Nobody gets in with it any more."""
        await self.call("DELETE", f"/tokens/{quote(token_id)}")

    async def drain(self, node_id: str, *, undo: bool, hand_over: bool = False) -> NodeModel:
        """Has a node's replicas moved, or lets it have some again."""
        method, params = "DELETE" if undo else "PUT", {"hand_over": hand_over}
        return await self.answer(NodeModel, method, f"/nodes/{quote(node_id)}/drain", params=params)

    async def delete_node(self, node_id: str) -> None:
        """Forgets a node whose machine is gone."""
        await self.call("DELETE", f"/nodes/{quote(node_id)}")

    async def replace_gateway(self, gateway_id: str) -> GatewayModel:
        """Starts another gateway in the place of this one; returns when it works."""
        path = f"/gateways/{quote(gateway_id)}/replace"
        return await self.post(GatewayModel, path, timeout=REPLACE_TIMEOUT.total_seconds())

    async def quarantine(self) -> list[SuspectModel]:
        """Requests that are refused, or are suspects."""
        return await self.pages_of("quarantine", SuspectModel, lambda it: it.fingerprint)

    async def release(self, fingerprint: str) -> None:
        """Every gateway takes the request again."""
        await self.call("DELETE", f"/quarantine/{quote(fingerprint)}")


__all__ = ["AdminClient", "quote", "token_in"]
