"""Canaries: start, look, pause, resume, promote, abort, delete."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Response, status

from penstock.control.admin.auth import Viewer
from penstock.control.admin.canary.models import CanaryRunModel, CanaryStatusModel
from penstock.control.admin.canary.spec_models import CanarySpecModel
from penstock.control.admin.parameters import Paged
from penstock.control.admin.resources import resources
from penstock.control.admin.writes import Asked, Change, creates, tagged
from penstock.control.managers.canary.canaries import CanaryManager
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.state.canary.canary import Canary
from penstock.control.state.canary.spec import CanarySpec

Creates = Annotated[Asked, creates(CanarySpec)]


class CanariesApi:
    """The handlers of /canaries; their docstrings are the API's documents."""

    def __init__(self, canaries: CanaryManager, cluster: ClusterStore) -> None:
        self._canaries = canaries
        self._cluster = cluster

    def router(self) -> APIRouter:
        """The handlers on their paths."""
        router = resources("/canaries", tag="canaries")
        router.get("")(self.list_canaries)
        router.post("", status_code=status.HTTP_201_CREATED)(self.start_canary)
        router.get("/{name}")(self.get_canary)
        router.post("/{name}/pause")(self.pause_canary)
        router.post("/{name}/resume")(self.resume_canary)
        router.post("/{name}/promote")(self.promote_canary)
        router.post("/{name}/abort")(self.abort_canary)
        router.delete("/{name}", status_code=status.HTTP_204_NO_CONTENT)(self.delete_canary)
        return router

    async def list_canaries(self, _: Viewer, page: Paged) -> list[CanaryRunModel]:
        """Canaries, by name; those that have ended too."""
        return [CanaryRunModel.of(each) for each in page.of(self._canaries.canaries.named)]

    async def start_canary(self, body: CanarySpecModel, write: Creates) -> CanaryRunModel:
        """Gives a candidate a share of the clients, and goes on step by step where it is not worse
        than what they have beside it. 409 where one of this name, or of this target, has not
        ended. Without a candidate it waits for the next revision of its target, and for each after
        that."""
        made = await self._canaries.create(body.to_spec(), write)
        write.tell(made, f"/admin/v1/canaries/{made.spec.name}")
        return CanaryRunModel.of(made)

    async def get_canary(self, name: str, _: Viewer, response: Response) -> CanaryStatusModel:
        """One canary, with both arms side by side, and what is missing before the next step."""
        account = self._canaries.account(name)
        tagged(response, account.canary)
        return CanaryStatusModel.told(account, self._cluster.view().shadows)

    async def pause_canary(self, name: str, write: Change) -> CanaryRunModel:
        """Goes no further until it is resumed. The share stays, and a guard still takes it back."""
        return _told(await self._canaries.pause(name, write), write)

    async def resume_canary(self, name: str, write: Change) -> CanaryRunModel:
        """Goes on where it was paused."""
        return _told(await self._canaries.resume(name, write), write)

    async def promote_canary(self, name: str, write: Change) -> CanaryRunModel:
        """Gives everybody the candidate for good, whatever is missing. Of a deployment, its
        template is rolled out at the target; of an alias, that moves; of a revision, the rollout
        goes to its end."""
        return _told(await self._canaries.promote(name, write), write)

    async def abort_canary(self, name: str, write: Change) -> CanaryRunModel:
        """Gives everybody what they had before. What is under way ends where it began."""
        return _told(await self._canaries.abort(name, write), write)

    async def delete_canary(self, name: str, write: Change) -> None:
        """Forgets a canary that has ended, or waits; 409 for one that goes on."""
        await self._canaries.delete(name, write)


def _told(canary: Canary, write: Asked) -> CanaryRunModel:
    write.tell(canary)
    return CanaryRunModel.of(canary)
