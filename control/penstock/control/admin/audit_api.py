"""The audit trail: who changed what, newest first."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field

from penstock.control.admin.auth import Viewer
from penstock.control.admin.derived import Model, Shown
from penstock.control.admin.resources import resources
from penstock.control.managers.cluster_store import SEEN
from penstock.control.store.store import AuditEntry, Document, Store

MOST = 1000
# What even a viewer of the trail is not to see.
HIDDEN = frozenset({"digest"})

Limit = Annotated[int, Query(ge=1, le=MOST, description="entries, about: changes stay together")]
After = Annotated[
    int | None, Query(ge=0, description="go on behind this version: `next` of the page before")
]
Before = Annotated[int | None, Query(ge=0, description="the same, as it was called first")]

Seen = Annotated[
    bool,
    Query(description="also what the head was told, as by each heartbeat that changes a state"),
]


class AuditModel(Shown):
    """One document's change."""

    version: int = Field(description="of the transaction; changes made at once share it")
    at: datetime
    who: str = Field(
        description='name of a token; "head": what it decided, "head (seen)": what it was told'
    )
    what: str
    kind: str
    name: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class AuditPage(Model):
    """Entries, newest first, and where to go on."""

    entries: list[AuditModel]
    next: int | None = Field(description="pass as `after` for older entries; null: that is all")


def audit_api(store: Store) -> APIRouter:
    """Read by anybody with a token."""
    router = resources("/audit", tag="audit")

    @router.get("")
    async def list_audit(
        _: Viewer,
        limit: Limit = 100,
        after: After = None,
        before: Before = None,
        seen: Seen = False,
    ) -> AuditPage:
        """What was changed, by whom, before and after; the newest first."""
        older_than = before if after is None else after
        left_out = "" if seen else SEEN
        return page(await store.audit(limit, before=older_than, without=left_out), limit)

    return router


def page(found: Sequence[AuditEntry], limit: int) -> AuditPage:
    """Whole transactions: the last one may have been cut off by the limit, and comes next time."""
    last = found[-1].version if len(found) == limit else 0
    whole = [entry for entry in found if entry.version > last] or found
    return AuditPage(
        entries=[_shown(entry) for entry in whole],
        next=whole[-1].version if last else None,
    )


def _shown(entry: AuditEntry) -> AuditModel:
    before, after = _without_secrets(entry.before), _without_secrets(entry.after)
    return AuditModel.drawn(entry, entry.key, before=before, after=after)


def _without_secrets(document: Document | None) -> dict[str, Any] | None:
    if document is None:
        return None
    return {key: value for key, value in document.items() if key not in HIDDEN}
