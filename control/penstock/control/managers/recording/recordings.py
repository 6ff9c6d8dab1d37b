"""Recordings: started, stopped, deleted; and ended once they have what they were to have."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Final

from penstock.control.errors import InvalidInput, StoreUnavailable
from penstock.control.managers.changes import watching
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.write import Write
from penstock.control.state.cluster import ClusterView
from penstock.control.state.recording.orders import check_named, waits_for
from penstock.control.state.recording.recorded import RecordingStanding
from penstock.control.state.recording.recordings import STOPPED, Recording, Recordings, why_ended
from penstock.control.state.recording.spec import RecordingSpec
from penstock.control.supervision.clock import Clock

log = logging.getLogger(__name__)

LOOK_EVERY: Final = timedelta(seconds=1)


class RecordingManager:
    """Changes the view through the cluster store, so that every gateway is told at once. All raise
    `StoreUnavailable` and `HoldsStill`, and `revision-mismatch`.
    """

    def __init__(self, cluster: ClusterStore, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock

    @property
    def recordings(self) -> Recordings:
        """All that there are."""
        return self._cluster.view().recordings

    def message(self, recording: Recording) -> str:
        """Why it records nothing; empty: it does."""
        return waits_for(self._cluster.view(), recording)

    async def start(self, spec: RecordingSpec, write: Write) -> Recording:
        """Begins to record. Raises `InvalidInput`, `recording-exists` and `conflict`."""
        now = self._clock.now()
        if spec.until.at and spec.until.at <= now:
            raise InvalidInput(f"until.at is {spec.until.at.isoformat()}, which is past")
        made = Recording(spec, secrets.token_hex(16), secrets.randbits(63), now)

        def step(view: ClusterView) -> ClusterView:
            check_named(view, spec)
            return replace(view, recordings=view.recordings.with_new(made))

        await write.apply(self._cluster, step, f"start recording {spec.name}")
        return made

    async def stop(self, name: str, write: Write) -> Recording:
        """Records nothing more; what was recorded stays. Raises `unknown-recording`."""

        def step(view: ClusterView) -> ClusterView:
            found = view.recordings.recording(name)
            write.check(found, f"recording {name!r}")
            ended = replace(found, ended=found.ended or STOPPED)
            return replace(view, recordings=view.recordings.having(ended))

        view = await write.apply(self._cluster, step, f"stop recording {name}")
        return view.recordings.recording(name)

    async def delete(self, name: str, write: Write) -> None:
        """Ends it and forgets all that it recorded. Raises `unknown-recording`."""

        def step(view: ClusterView) -> ClusterView:
            write.check(view.recordings.recording(name), f"recording {name!r}")
            return replace(view, recordings=view.recordings.without(name))

        await write.apply(self._cluster, step, f"delete recording {name}")


class RecordingLimits:
    """Looks once a second, while there are recordings."""

    def __init__(
        self,
        cluster: ClusterStore,
        recorded: Callable[[str], RecordingStanding | None],
        clock: Clock,
    ) -> None:
        self._cluster = cluster
        self._recorded = recorded
        self._clock = clock

    async def run(self) -> None:
        """Until cancelled."""
        with watching(self._cluster, lambda view: (view.recordings.named,)) as changed:
            while True:
                await changed.wait(LOOK_EVERY if self._named else None)
                try:
                    await self.judge()
                except StoreUnavailable as error:
                    log.error("limits of recordings not looked at", extra={"error": str(error)})

    async def judge(self) -> None:
        """Ends those that have what they were to have. Raises `StoreUnavailable`."""
        now, due = self._clock.now(), dict[str, str]()
        for name, found in self._named.items():
            if not found.ended and (why := why_ended(found, self._recorded(found.uid), now)):
                due[name] = why
        if due:
            what = "; ".join(f"recording {name} ends: {why}" for name, why in due.items())
            await self._cluster.apply_plan(lambda view: (_ended(view, due), what))

    @property
    def _named(self) -> Mapping[str, Recording]:
        return self._cluster.view().recordings.named


def _ended(view: ClusterView, due: Mapping[str, str]) -> ClusterView:
    recordings = view.recordings
    for name, why in due.items():
        if name in recordings.named:
            recordings = recordings.having(replace(recordings.named[name], ended=why))
    return replace(view, recordings=recordings)
