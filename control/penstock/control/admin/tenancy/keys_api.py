"""API keys of tenants, and whether requests without one are answered."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Response, status

from penstock.control.admin.auth import Operator, Viewer, sets
from penstock.control.admin.parameters import Paged
from penstock.control.admin.resources import resources
from penstock.control.admin.tenancy.tenant_models import (
    AccessModel,
    CreatedKeyModel,
    KeyModel,
    NewKey,
)
from penstock.control.errors import InvalidInput
from penstock.control.managers.tenancy.tenants import TenantManager
from penstock.control.state.tenancy.tenants import Access, ApiKey
from penstock.control.state.tenancy.tokens import Token
from penstock.control.supervision.clock import Clock

EndStreams = Annotated[bool, Query(description="end what is under way with it, too")]
SetsKey = Annotated[Token, sets(ApiKey)]
SetsAccess = Annotated[Token, sets(Access)]


def keys_api(tenants: TenantManager, clock: Clock) -> APIRouter:
    """Seen by anybody with a token, made and revoked by operators."""
    router = resources("/tenants/{tenant_id}/keys", tag="tenants")

    @router.get("")
    async def list_keys(tenant_id: str, _: Viewer, page: Paged) -> list[KeyModel]:
        """A tenant's keys by id, without the keys themselves."""
        tenancy = tenants.tenancy
        found = {key.id: key for key in tenancy.keys_of(tenancy.tenant(tenant_id).id)}
        return [KeyModel.drawn(key) for key in page.of(found)]

    @router.post("", status_code=status.HTTP_201_CREATED)
    async def create_key(
        tenant_id: str, caller: SetsKey, response: Response, body: NewKey | None = None
    ) -> CreatedKeyModel:
        """Makes a key. It is shown in this answer and never again. From the first one on, requests
        without a key are refused, and the answer's `warning` says so."""
        asked = body or NewKey.model_validate({})
        end = _end(asked, clock.now())
        made = await tenants.create_key(
            tenant_id,
            asked.name,
            end,
            caller.name,
            tokens_per_day=asked.tokens_per_day,
            usd_per_day=asked.usd_per_day,
        )
        response.headers["location"] = f"/admin/v1/tenants/{made.key.tenant}/keys/{made.key.id}"
        response.headers["cache-control"] = "no-store"
        return CreatedKeyModel.made(made)

    @router.delete("/{key_id}", status_code=status.HTTP_204_NO_CONTENT)
    async def revoke_key(
        tenant_id: str, key_id: str, caller: Operator, end_streams: EndStreams = False
    ) -> None:
        """Nobody gets in with it any more, at any gateway. Answers that are under way with it go on
        to their end; with `end_streams` they end with the error `key_revoked`, within two seconds.
        """
        await tenants.revoke_key(tenant_id, key_id, caller.name, end_streams=end_streams)

    return router


def access_api(tenants: TenantManager) -> APIRouter:
    """Whether requests without a key are answered."""
    router = resources("/access", tag="tenants")

    @router.get("")
    async def get_access(_: Viewer) -> AccessModel:
        """Whether requests without a key are answered."""
        return AccessModel.of(tenants.tenancy.access)

    @router.put("")
    async def put_access(body: AccessModel, caller: SetsAccess) -> AccessModel:
        """Has requests without a key answered or refused. The first key ever made has them refused
        once more."""
        allowed = body.anonymous == "allowed"
        return AccessModel.of(await tenants.set_anonymous(caller.name, allowed=allowed))

    return router


def _end(asked: NewKey, now: datetime) -> datetime | None:
    if asked.expires_in_days is None:
        return asked.expires_at
    if asked.expires_at is not None:
        raise InvalidInput("expires_at and expires_in_days are both given: leave one out")
    return now + timedelta(days=asked.expires_in_days)
