"""The admin REST API as a client sees it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Self, TypeVar

import httpx
from pydantic import TypeAdapter, ValidationError

from penstock.control.admin.models import (
    DeploymentModel,
    GatewayModel,
    NodeModel,
    ReplicaModel,
    SpecModel,
)
from penstock.control.errors import InvalidInput, InvalidSetting, Unavailable

TIMEOUT = timedelta(seconds=5)
T = TypeVar("T")


class AdminClient:
    """Calls to one head. Use as a context manager.

    Each raises `Unavailable` when the head does not answer, `InvalidInput` when it refuses.
    """

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        try:
            self._http = httpx.AsyncClient(
                base_url=f"{self.url}/admin/v1", timeout=TIMEOUT.total_seconds(), trust_env=False
            )
        except httpx.InvalidURL as error:
            raise InvalidSetting(f"--admin is {url!r}: {error}") from error

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def deployments(self) -> list[DeploymentModel]:
        """Every deployment with its status."""
        return await self._list("deployments", DeploymentModel)

    async def replicas(self) -> list[ReplicaModel]:
        """Every replica."""
        return await self._list("replicas", ReplicaModel)

    async def nodes(self) -> list[NodeModel]:
        """Every node."""
        return await self._list("nodes", NodeModel)

    async def gateways(self) -> list[GatewayModel]:
        """Every gateway."""
        return await self._list("gateways", GatewayModel)

    async def put_deployment(self, name: str, spec: SpecModel) -> None:
        """Creates a deployment, or makes it as this spec says."""
        await self._call("PUT", f"/deployments/{name}", json=spec.model_dump())

    async def scale(self, name: str, replicas: int) -> None:
        """Changes how many replicas a deployment is to have."""
        await self._call("POST", f"/deployments/{name}/scale", json={"replicas": replicas})

    async def delete_deployment(self, name: str) -> None:
        """Deletes a deployment; its replicas drain and stop."""
        await self._call("DELETE", f"/deployments/{name}")

    async def _list(self, what: str, model: type[T]) -> list[T]:
        reply = await self._call("GET", f"/{what}")
        try:
            return TypeAdapter(list[model]).validate_json(reply.content)  # type: ignore[valid-type]
        except ValidationError as error:
            raise Unavailable(
                f"{self.url} answers, but not as a Penstock head of this version does: "
                f"{error.error_count()} wrong fields in {what}"
            ) from error

    async def _call(self, method: str, path: str, **more: Any) -> httpx.Response:
        try:
            reply = await self._http.request(method, path, **more)
        except httpx.HTTPError as error:
            reason = str(error) or type(error).__name__
            raise Unavailable(f"no head answers at {self.url}: {reason}") from error
        if reply.is_success:
            return reply
        detail = _detail(reply)
        if reply.is_client_error:
            raise InvalidInput(detail)
        raise Unavailable(f"the head at {self.url} answers {reply.status_code}: {detail}")


def _detail(reply: httpx.Response) -> str:
    try:
        return str(reply.json()["detail"])
    except (ValueError, KeyError, TypeError):
        return reply.text[:200]
