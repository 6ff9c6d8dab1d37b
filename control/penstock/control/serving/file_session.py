"""The steps of `penstock up`: what is served, files say, and they are followed when they change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Protocol, cast

from penstock.control import spec_files
from penstock.control.admin.apply.models import PlanModel
from penstock.control.admin.rollout.models import DeploymentModel
from penstock.control.errors import (
    BadDocuments,
    CannotStart,
    Code,
    InvalidInput,
    NotFound,
    PenstockError,
    Unauthenticated,
    Unavailable,
)
from penstock.control.serving.options import Files
from penstock.control.serving.session import ANSWER_DEADLINE, PROCESS_DEADLINE, Session
from penstock.control.serving.watching import Watch
from penstock.control.state.cluster import some_of
from penstock.control.state.rollout.status import DeploymentPhase

SET = "up"
"""The set of what `up` applies: what it made it deletes, and nothing else."""
EVERY = timedelta(seconds=1)
SETTLED = (DeploymentPhase.READY, DeploymentPhase.STOPPED, DeploymentPhase.FAILED)
REASON = "penstock up"


class Applying(Protocol):
    """Who takes documents."""

    async def apply(
        self,
        documents: Sequence[Mapping[str, Any]],
        *,
        set_name: str,
        prune: bool,
        force: bool,
        reason: str,
    ) -> PlanModel:
        """Makes what they say. Raises `BadDocuments` and `Unavailable`."""


class FollowedFiles:
    """Files, and what became of them when they were applied last."""

    def __init__(self, files: Files, admin: Applying, tell: Callable[[str], None]) -> None:
        self._files = files
        self._admin = admin
        self._tell = tell
        self._stamp = spec_files.stamp(files.sources)

    async def apply(self) -> None:
        """Makes what they say. Raises `InvalidInput`, of that kind `BadDocuments` where the head
        refuses them, and `Unavailable`."""
        documents = spec_files.read(self._files.sources)
        said = [each.said for each in documents]
        force = self._files.force
        try:
            plan = await self._admin.apply(
                said, set_name=SET, prune=True, force=force, reason=REASON
            )
        except BadDocuments as error:
            raise BadDocuments(error.faults, error.code) from spec_files.placed(error, documents)
        if plan.created or plan.changed or plan.deleted:
            self._tell(
                f"{', '.join(self._files.sources)}: {plan.created} created, {plan.changed} changed,"
                f" {plan.deleted} deleted, {plan.same} the same"
            )

    async def look(self) -> None:
        """Applies them if they have changed since; what is refused is told, and what stands goes
        on."""
        now = spec_files.stamp(self._files.sources)
        if now == self._stamp:
            return
        try:
            await self.apply()
        except Unavailable:  # the head is being started again: at the next look
            return
        except (InvalidInput, NotFound, Unauthenticated) as error:
            self._tell(f"refused, what stands goes on: {in_words(error)}")
        self._stamp = now


class FileSession(Session):
    """One run of `penstock up`, its processes aside."""

    _followed: FollowedFiles

    async def _deploy(self) -> None:
        files = self._options.files
        assert files is not None
        admin = cast(Applying, self._admin)
        self._followed = FollowedFiles(files, admin, self._shown.event)

        async def apply() -> bool:
            await self._followed.apply()
            return True

        try:
            await self._until(apply, f"applying {', '.join(files.sources)}", PROCESS_DEADLINE)
        except (InvalidInput, NotFound, Unauthenticated) as error:
            if getattr(error, "code", None) is not Code.CONFLICT:
                raise CannotStart(in_words(error)) from error
            self._shown.event(f"refused, what stands goes on: {in_words(error)}")
        await self._until(self._alone, "removing what was served last time", PROCESS_DEADLINE)

    async def _load(self) -> None:
        began, told = self._loop.time(), set[str]()
        wanted = set(self._options.deployments)
        while wanted - told:
            await self._follow()
            found = await self._deployments()
            if found:  # files that were refused may name others
                wanted &= {each.name for each in found}
            for each in found:
                if each.name in wanted - told and each.status.phase in SETTLED:
                    told.add(each.name)
                    self._tell_of(each, self._loop.time() - began)
            if left := sorted(wanted - told):
                seconds = self._loop.time() - began
                self._shown.progress(f"loading {some_of(left)}", seconds=seconds)
                await asyncio.sleep(EVERY.total_seconds() / 2)

    def _tell_of(self, deployment: DeploymentModel, seconds: float) -> None:
        match deployment.status.phase:
            case DeploymentPhase.READY:
                self._shown.done(f"{deployment.name} is loaded ({seconds:.0f} s)")
            case DeploymentPhase.FAILED:
                self._shown.event(f"{deployment.name} is not served: {deployment.status.message}")

    async def _answer(self) -> None:
        if any(each.status.ready for each in await self._deployments()):
            await self._until(self._asked_for, "waiting for the gateway", ANSWER_DEADLINE)

    async def _watch(self) -> None:
        watch = Watch(self._admin, self._shown.event)
        while True:
            await watch.look()
            await self._follow()
            await asyncio.sleep(EVERY.total_seconds())

    async def _follow(self) -> None:
        files = self._options.files
        if files is not None and files.watch:
            await self._followed.look()

    async def _deployments(self) -> list[DeploymentModel]:
        try:
            return await self._admin.deployments()
        except Unavailable:  # the head is being started again
            return []

    async def _asked_for(self) -> bool:
        try:
            return bool(await self._gateway.models())
        except Unauthenticated:
            return await self._ready_for_keys()


def in_words(error: PenstockError) -> str:
    """The error, with file and line where it is of documents."""
    return str(error.__cause__ if isinstance(error, BadDocuments) and error.__cause__ else error)
