"""Shadows: create, look, pause, resume, delete."""

from __future__ import annotations

import json
from datetime import UTC, timedelta
from typing import Annotated, Protocol

from fastapi import APIRouter, Response, status

from penstock.control.admin.auth import Viewer
from penstock.control.admin.parameters import Paged
from penstock.control.admin.resources import resources
from penstock.control.admin.shadow.models import (
    ShadowMadeModel,
    ShadowModel,
    ShadowReportModel,
    ShadowSpecModel,
)
from penstock.control.admin.writes import Asked, Change, creates, tagged
from penstock.control.managers.shadow.shadows import ShadowManager
from penstock.control.state.shadow.comparing import Account, Standing
from penstock.control.state.shadow.shadows import Shadow
from penstock.control.state.shadow.spec import ShadowSpec
from penstock.control.state.tenancy.tokens import Role
from penstock.control.store.usage import UsageStore
from penstock.control.supervision.clock import Clock

Creates = Annotated[Asked, creates(ShadowSpec)]


class Comparisons(Protocol):
    """What was compared."""

    def standing(self, uid: str) -> Standing | None:
        """How a shadow stands; None: nobody has said yet."""

    async def account(self, uid: str, pairs_a_day: float, *, with_texts: bool) -> Account:
        """All that is known of one. Raises `unknown-shadow` and `Unavailable`."""


class ShadowsApi:
    """The handlers of /shadows; their docstrings are the API's documents."""

    def __init__(
        self, shadows: ShadowManager, comparisons: Comparisons, store: UsageStore, clock: Clock
    ) -> None:
        self._shadows = shadows
        self._comparisons = comparisons
        self._store = store
        self._clock = clock

    def router(self) -> APIRouter:
        """The handlers on their paths."""
        router = resources("/shadows", tag="shadows")
        router.get("")(self.list_shadows)
        router.post("", status_code=status.HTTP_201_CREATED)(self.create_shadow)
        router.get("/{name}")(self.get_shadow)
        router.get("/{name}/report")(self.report_shadow)
        router.post("/{name}/pause")(self.pause_shadow)
        router.post("/{name}/resume")(self.resume_shadow)
        router.delete("/{name}", status_code=status.HTTP_204_NO_CONTENT)(self.delete_shadow)
        return router

    async def list_shadows(self, _: Viewer, page: Paged) -> list[ShadowModel]:
        """Shadows, by name."""
        return [self._shown(each) for each in page.of(self._shadows.shadows.named)]

    async def create_shadow(self, body: ShadowSpecModel, write: Creates) -> ShadowMadeModel:
        """Begins to repeat requests of a deployment to another one, once they are answered, and to
        compare the answers; 409 where the name is taken. Clients notice nothing of it."""
        made = await self._shadows.create(body.to_spec(), write)
        write.tell(made, f"/admin/v1/shadows/{made.spec.name}")
        pairs_a_day = await self._pairs_a_day(made)
        return ShadowMadeModel(**self._shown(made).model_dump(), pairs_a_day=pairs_a_day)

    async def get_shadow(self, name: str, _: Viewer, response: Response) -> ShadowModel:
        """One shadow."""
        tagged(response, shadow := self._shadows.shadows.shadow(name))
        return self._shown(shadow)

    async def report_shadow(self, name: str, caller: Viewer) -> ShadowReportModel:
        """Whether the candidate is worse, check by check, with a known error rate however often one
        looks; and how many pairs, and days of traffic, the margins take. Who has role operator sees
        the worst pairs too, where the shadow records any."""
        shadow = self._shadows.shadows.shadow(name)
        pairs_a_day = await self._pairs_a_day(shadow)
        reads = caller.role.includes(Role.OPERATOR)
        account = await self._comparisons.account(shadow.uid, pairs_a_day, with_texts=reads)
        return ShadowReportModel(
            **self._shown(shadow).model_dump(),
            pairs_a_day=pairs_a_day,
            report=json.loads(account.json),
            markdown=account.markdown,
            html=account.html,
        )

    async def pause_shadow(self, name: str, write: Change) -> ShadowModel:
        """Repeats nothing until it is resumed; what was compared stays."""
        write.tell(shadow := await self._shadows.pause(name, write))
        return self._shown(shadow)

    async def resume_shadow(self, name: str, write: Change) -> ShadowModel:
        """Goes on where it was paused; 409 for one that has ended."""
        write.tell(shadow := await self._shadows.resume(name, write))
        return self._shown(shadow)

    async def delete_shadow(self, name: str, write: Change) -> None:
        """Ends a shadow; nothing of what it compared is kept."""
        await self._shadows.delete(name, write)

    async def _pairs_a_day(self, shadow: Shadow) -> float:
        """At most, by what the primary had today and yesterday."""
        today = self._clock.now().astimezone(UTC).date()
        rows = await self._store.usage(today - timedelta(days=1), today)
        return self._shadows.pairs_a_day(shadow.spec, rows)

    def _shown(self, shadow: Shadow) -> ShadowModel:
        standing = self._comparisons.standing(shadow.uid)
        return ShadowModel.of(shadow, self._shadows.condition(shadow), standing)
