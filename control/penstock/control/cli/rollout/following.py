"""Follows a rollout to its end: a bar at a terminal, else a line for each change."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from datetime import timedelta

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from penstock.control.admin.rollout.models import DeploymentModel, RolloutModel
from penstock.control.cli.admin_calls import Head, patiently
from penstock.control.cli.failures import more, why
from penstock.control.cli.outcome import finish
from penstock.control.errors import NotFound
from penstock.control.outside.admin_client import AdminClient
from penstock.control.state.rollout.revision import RevisionState
from penstock.control.state.rollout.status import DeploymentPhase

EVERY = timedelta(milliseconds=300)


def follow(head: Head, deployment: DeploymentModel) -> None:
    """Returns once all replicas are of the revision that is current now, and ready; ends the
    command with 1 where another revision has taken its place."""
    wanted = deployment.status.rollout
    if wanted is None:
        raise NotFound("the head tells nothing of rollouts: it is of an older version")
    with _shown(deployment.name) as show:
        last = head.ask(lambda admin: _followed(admin, deployment, wanted.revision, show))
    told = last.status.rollout
    if told is not None and told.revision == wanted.revision and is_done(last):
        return typer.echo(_done(last, told), err=True)
    typer.echo(f"{last.name}: {_undone(last, wanted.revision)}", err=True)
    return finish(1)


async def _followed(
    admin: AdminClient,
    deployment: DeploymentModel,
    revision: int,
    show: Callable[[DeploymentModel], None],
) -> DeploymentModel:
    name = deployment.name
    while True:
        show(deployment)
        if _has_ended(deployment, revision):
            return deployment
        await asyncio.sleep(EVERY.total_seconds())
        found = await patiently(lambda: admin.deployment(name), EVERY)
        if found is None or found.uid != deployment.uid:
            raise NotFound(f"{name} was deleted meanwhile")
        deployment = found


def _has_ended(deployment: DeploymentModel, revision: int) -> bool:
    """Whether nothing comes of it any more that has not come yet."""
    told = deployment.status.rollout
    if told is None or told.revision != revision or is_done(deployment):
        return True
    if told.state is RevisionState.FAILED or (
        told.paused and told.state is not RevisionState.SERVED
    ):
        return True
    # Nothing served before it: it is tried again and again.
    return deployment.status.phase is DeploymentPhase.FAILED and bool(told.cause)


def is_done(deployment: DeploymentModel) -> bool:
    """Whether its replicas are as its spec says, and ready."""
    told, wanted = deployment.status.rollout, deployment.spec.replicas
    if told is None or told.old or told.ready != wanted:
        return False
    return told.state is RevisionState.SERVED or not wanted


def _undone(deployment: DeploymentModel, revision: int) -> str:
    told = deployment.status.rollout
    if told is None or told.revision == revision:
        return why(deployment)
    cause = f": {told.cause}{more(told.failed_replica)}" if told.cause else ""
    return f"revision {told.revision} took the place of {revision}{cause}"


def _done(deployment: DeploymentModel, told: RolloutModel) -> str:
    replicas = f"{told.ready} replica{'s' if told.ready != 1 else ''}"
    return f"{deployment.name}: revision {told.revision} serves, {replicas} ready"


def words(deployment: DeploymentModel) -> str:
    """How far it has come, on one line."""
    told = deployment.status.rollout
    if told is None:
        return str(deployment.status.phase)
    old = f", {told.old} of before" if told.old else ""
    said = f": {why(deployment)}" if why(deployment) else ""
    return (
        f"revision {told.revision} {told.state}, {told.ready} of {deployment.spec.replicas}"
        f" ready{old}{said}"
    )


class _shown:
    """Shows each state that differs from the one before, on stderr."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._last = ""
        self._bar: Progress | None = None

    def __enter__(self) -> Callable[[DeploymentModel], None]:
        if sys.stderr.isatty():
            columns = (
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TimeElapsedColumn(),
            )
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task(self._name, total=1)
            self._bar.start()
        return self._show

    def __exit__(self, *_: object) -> None:
        if self._bar:
            self._bar.stop()

    def _show(self, deployment: DeploymentModel) -> None:
        said = f"{self._name}: {words(deployment)}"
        told = deployment.status.rollout
        if self._bar and told:
            total, done = max(deployment.spec.replicas, 1), told.ready
            self._bar.update(self._task, description=said, total=total, completed=done)
        elif said != self._last:
            typer.echo(said, err=True)
        self._last = said
