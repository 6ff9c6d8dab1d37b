"""The admin REST API as a client sees it."""

from __future__ import annotations

import ssl
import urllib.parse
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, Self, TypeVar

import httpx
from pydantic import TypeAdapter, ValidationError

from penstock.control.admin.deployment_settings import SettingsModel
from penstock.control.admin.models import (
    CreatedTokenModel,
    DeploymentModel,
    GatewayModel,
    NodeModel,
    ReplicaModel,
    SpecModel,
    TokenModel,
)
from penstock.control.admin.quarantine_api import SuspectModel
from penstock.control.admin.version_api import VersionModel
from penstock.control.errors import (
    InvalidInput,
    InvalidSetting,
    NoHeadAnswers,
    NotFound,
    SecretUnusable,
    Unauthenticated,
    Unavailable,
)
from penstock.control.secrets_files import read_secret
from penstock.control.state.tokens import Role

TIMEOUT = timedelta(seconds=5)
# The head gives a new gateway half a minute to work.
REPLACE_TIMEOUT = timedelta(seconds=45)
T = TypeVar("T")


def token_in(file: Path) -> Callable[[], str]:
    """Reads the token anew for each call: a head that starts for the first time is yet to write it.

    What it returns raises `Unavailable` without the file, `SecretUnusable` for a bad one.
    """

    def read() -> str:
        try:
            return read_secret(file)
        except SecretUnusable as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
            raise Unavailable(
                f"no admin token in {file}: the head writes it to its data directory; name that "
                "with --data-dir, or a file with a token by --admin-token-file"
            ) from error

    return read


class AdminClient:
    """Calls to one head. Use as a context manager.

    Each raises `Unavailable` when the head does not answer, `InvalidInput` when it refuses, and
    what `token` raises. `ca`: a PEM file of who may have signed the head's certificate.
    """

    def __init__(self, url: str, token: Callable[[], str], *, ca: Path | None = None) -> None:
        self.url = url.rstrip("/")
        self._token = token
        try:
            self._http = httpx.AsyncClient(
                base_url=f"{self.url}/admin/v1",
                timeout=TIMEOUT.total_seconds(),
                trust_env=False,
                verify=_trusting(ca),
            )
        except httpx.InvalidURL as error:
            raise InvalidSetting(f"--admin is {url!r}: {error}") from error

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def version(self) -> VersionModel:
        """Which Penstock answers, and whether it is in command."""
        return self._read(await self._call("GET", "/version"), VersionModel)

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
        await self._call("PUT", f"/deployments/{quote(name)}", json=spec.model_dump())

    async def scale(self, name: str, replicas: int) -> DeploymentModel:
        """Changes how many replicas a deployment is to have."""
        body = {"replicas": replicas}
        reply = await self._call("POST", f"/deployments/{quote(name)}/scale", json=body)
        return self._read(reply, DeploymentModel)

    async def change_settings(self, name: str, settings: SettingsModel) -> DeploymentModel:
        """Changes those settings of a deployment that `settings` names."""
        path = f"/deployments/{quote(name)}/settings"
        body = settings.model_dump(exclude_unset=True)
        return self._read(await self._call("PATCH", path, json=body), DeploymentModel)

    async def delete_deployment(self, name: str) -> None:
        """Deletes a deployment; its replicas drain and stop."""
        await self._call("DELETE", f"/deployments/{quote(name)}")

    async def deploy(self, name: str, spec: SpecModel, *, only_new: bool) -> DeploymentModel:
        """As `put_deployment`; with `only_new` a deployment that exists is left alone."""
        headers = {"if-none-match": "*"} if only_new else {}
        reply = await self._call(
            "PUT", f"/deployments/{quote(name)}", json=spec.model_dump(), headers=headers
        )
        return self._read(reply, DeploymentModel)

    async def tokens(self) -> list[TokenModel]:
        """Every token, without the tokens themselves."""
        return await self._list("tokens", TokenModel)

    async def create_token(self, name: str, role: Role) -> CreatedTokenModel:
        """Makes a token; the answer alone has it."""
        reply = await self._call("POST", "/tokens", json={"name": name, "role": role})
        return self._read(reply, CreatedTokenModel)

    async def revoke_token(self, token_id: str) -> None:
        """Nobody gets in with it any more."""
        await self._call("DELETE", f"/tokens/{quote(token_id)}")

    async def drain(self, node_id: str, *, undo: bool) -> NodeModel:
        """Has a node's replicas moved, or lets it have some again."""
        method = "DELETE" if undo else "PUT"
        return self._read(await self._call(method, f"/nodes/{quote(node_id)}/drain"), NodeModel)

    async def replace_gateway(self, gateway_id: str) -> GatewayModel:
        """Starts another gateway in the place of this one; returns when it works."""
        path = f"/gateways/{quote(gateway_id)}/replace"
        reply = await self._call("POST", path, timeout=REPLACE_TIMEOUT.total_seconds())
        return self._read(reply, GatewayModel)

    async def quarantine(self) -> list[SuspectModel]:
        """Requests that are refused, or are suspects."""
        return await self._list("quarantine", SuspectModel)

    async def release(self, fingerprint: str) -> None:
        """Every gateway takes the request again."""
        await self._call("DELETE", f"/quarantine/{quote(fingerprint)}")

    async def _list(self, what: str, model: type[T]) -> list[T]:
        reply = await self._call("GET", f"/{what}")
        return self._read(reply, list[model])  # type: ignore[valid-type]

    def _read(self, reply: httpx.Response, kind: type[T]) -> T:
        try:
            return TypeAdapter(kind).validate_json(reply.content)
        except ValidationError as error:
            raise Unavailable(
                f"{self.url} answers, but not as a Penstock head of this version does: "
                f"{error.error_count()} wrong fields in {reply.request.url.path}"
            ) from error

    async def _call(self, method: str, path: str, **more: Any) -> httpx.Response:
        reply = await self._request(method, path, **more)
        if reply.is_success:
            return reply
        try:
            detail = str(reply.json()["detail"])
        except (ValueError, KeyError, TypeError):
            raise Unavailable(
                f"what answers at {self.url} is not a Penstock head: it says {reply.status_code} "
                f"to {method} {reply.request.url.path}; name the head's address with --admin"
            ) from None
        if reply.status_code == httpx.codes.UNAUTHORIZED:
            raise Unauthenticated(f"the head at {self.url} does not take this token: {detail}")
        if reply.is_client_error:
            raise InvalidInput(detail)
        raise Unavailable(f"the head at {self.url} answers {reply.status_code}: {detail}")

    async def _request(self, method: str, path: str, **more: Any) -> httpx.Response:
        """Asks without a token where there is none: first of all one wants to know of the head."""
        missing, headers = None, dict(more.pop("headers", {}))
        try:
            headers["authorization"] = f"Bearer {self._token()}"
        except Unavailable as error:
            missing = error
        try:
            reply = await self._http.request(method, path, headers=headers, **more)
        except (httpx.HTTPError, UnicodeError) as error:
            raise NoHeadAnswers(f"no head answers at {self.url}: {_reason(error)}") from error
        if missing and reply.status_code == httpx.codes.UNAUTHORIZED:
            raise missing
        return reply


def quote(name: str) -> str:
    """A name as one part of a path. Raises `NotFound` for what is no part, and so nobody's name."""
    if name in ("", ".", "..") or "/" in name:
        raise NotFound(f"nothing is named {name!r}: `penstock status` shows the names")
    return urllib.parse.quote(name, safe="")


def _trusting(ca: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=str(ca) if ca else None)
    except OSError as error:  # of which SSLError is one
        reason = error.strerror if error.filename or error.errno else str(error)
        raise InvalidSetting(
            f"--tls-ca is {str(ca)!r}, which holds no certificate that can be read: {reason}"
        ) from error


def _reason(error: Exception) -> str:
    if isinstance(error, httpx.TimeoutException):
        return "it does not say anything in time"
    if isinstance(error, httpx.RemoteProtocolError):
        return f"what listens there does not speak HTTP as a head does ({error})"
    if isinstance(error, httpx.ReadError):
        return "it hangs up without an answer"
    return str(error) or type(error).__name__
