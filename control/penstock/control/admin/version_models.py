"""Which Penstock answers, as the API shows it."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from penstock.control.admin.derived import Model


class LiveModel(Model):
    """What anybody may know."""

    version: str
    snapshot_version: int = Field(description="of the routes that gateways are told")


class RefusedModel(Model):
    """Who is not let in."""

    who: str = Field(description="kind, id and address")
    why: str
    since: datetime


class VersionModel(LiveModel):
    """What answers here."""

    cluster: str = Field(description="id, epoch and revision of the store")
    held: str = Field(description="why this head holds still; empty: it is in command")
    routes_withheld: str = Field(description="why gateways are not told the newest routes")
    refused: list[RefusedModel] = Field(
        description="node agents and gateways that ask to be let in, and are not"
    )
    unreadable: list[str] = Field(description="documents of the store that were skipped")
