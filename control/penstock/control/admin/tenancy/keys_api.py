"""API keys of tenants, and whether requests without one are answered."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

from fastapi import APIRouter, Query, Response, status

from penstock.control.admin.auth import Viewer
from penstock.control.admin.parameters import Paged
from penstock.control.admin.resources import resources
from penstock.control.admin.tenancy.tenant_models import (
    AccessModel,
    CreatedKeyModel,
    KeyLimits,
    KeyModel,
    NewKey,
)
from penstock.control.admin.writes import Asked, Change, changes, creates, tagged
from penstock.control.errors import InvalidInput
from penstock.control.managers.tenancy.tenants import TenantManager
from penstock.control.state.tenancy.tenants import Access, ApiKey
from penstock.control.supervision.clock import Clock

EndStreams = Annotated[bool, Query(description="end what is under way with it, too")]
CreatesKey = Annotated[Asked, creates(ApiKey)]
SetsAccess = Annotated[Asked, changes(Access)]


def keys_api(tenants: TenantManager, clock: Clock) -> APIRouter:
    """Seen by anybody with a token, made and revoked by operators."""
    router = resources("/tenants/{tenant_id}/keys", tag="tenants")

    @router.get("")
    async def list_keys(tenant_id: str, _: Viewer, page: Paged) -> list[KeyModel]:
        """A tenant's keys by id, without the keys themselves."""
        tenancy = tenants.tenancy
        found = {key.id: key for key in tenancy.keys_of(tenancy.tenant(tenant_id).id)}
        return [KeyModel.drawn(key) for key in page.of(found)]

    @router.get("/{key_id}")
    async def get_key(tenant_id: str, key_id: str, _: Viewer, response: Response) -> KeyModel:
        """One key, without the key itself."""
        tagged(response, found := tenants.tenancy.key_of(tenant_id, key_id))
        return KeyModel.drawn(found)

    @router.post("", status_code=status.HTTP_201_CREATED)
    async def create_key(
        tenant_id: str, write: CreatesKey, body: NewKey | None = None
    ) -> CreatedKeyModel:
        """Makes a key. It is shown in this answer and never again; a dry run shows none. From the
        first one on, requests without a key are refused, and the answer's `warning` says so."""
        asked = body or NewKey.model_validate({})
        end = _end(asked, clock.now())
        limits = asked.model_dump(include=set(KeyLimits.model_fields))
        made = await tenants.create_key(tenant_id, asked.name, end, write, **limits)
        write.tell(made.key, f"/admin/v1/tenants/{made.key.tenant}/keys/{made.key.id}")
        write.tell_secret()
        return CreatedKeyModel.made(made)

    @router.delete("/{key_id}", status_code=status.HTTP_204_NO_CONTENT)
    async def revoke_key(
        tenant_id: str, key_id: str, write: Change, end_streams: EndStreams = False
    ) -> None:
        """Nobody gets in with it any more, at any gateway. Answers that are under way with it go on
        to their end; with `end_streams` they end with the error `key_revoked`, within two seconds.
        """
        await tenants.revoke_key(tenant_id, key_id, write, end_streams=end_streams)

    return router


def access_api(tenants: TenantManager) -> APIRouter:
    """Whether requests without a key are answered."""
    router = resources("/access", tag="tenants")

    @router.get("")
    async def get_access(_: Viewer, response: Response) -> AccessModel:
        """Whether requests without a key are answered."""
        tagged(response, tenants.tenancy.access)
        return AccessModel.of(tenants.tenancy.access)

    @router.put("")
    async def put_access(body: AccessModel, write: SetsAccess) -> AccessModel:
        """Has requests without a key answered or refused. The first key ever made has them refused
        once more."""
        access = await tenants.set_anonymous(write, allowed=body.anonymous == "allowed")
        write.tell(access)
        return AccessModel.of(access)

    return router


def _end(asked: NewKey, now: datetime) -> datetime | None:
    if asked.expires_in_days is None:
        return asked.expires_at
    if asked.expires_at is not None:
        raise InvalidInput("expires_at and expires_in_days are both given: leave one out")
    return now + timedelta(days=asked.expires_in_days)
