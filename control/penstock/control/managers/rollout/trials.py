"""Tries a deployment: one small real request to a replica of it, past every gateway's admission."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from penstock.control.errors import Code, PenstockError, Unavailable
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.write import Write
from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import Replica, ReplicaAddress
from penstock.control.state.fleet.serving import is_current, is_judged, serving
from penstock.control.state.rollout.availability import prospect_of
from penstock.control.state.rollout.deployment import Deployment
from penstock.control.state.rollout.trial import Outcome, Question, Said, question_for, said_in
from penstock.control.state.tenancy.prices import Prices

# A provider has a minute for its first event; the rest is for the sixteen tokens behind it.
LIMIT = timedelta(seconds=90)


class ReplicaCaller(Protocol):
    """Sends requests to replicas."""

    async def ask(
        self,
        replica: ReplicaAddress,
        question: Question,
        *,
        model: str,
        request_id: str,
        within: timedelta,
        prices: Prices,
    ) -> Outcome:
        """The answer of the replica there. Raises `replica-failed` where it answers with an error,
        `replica-too-slow` where it does not end in time, `Unavailable` where it is not reached."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of a request, and who answered it."""

    deployment: str
    replica: str
    path: str
    request_id: str
    said: Said
    outcome: Outcome


class TrialManager:
    """Asks on behalf of operators. Nobody's usage counts it: it passes no gateway."""

    def __init__(self, cluster: ClusterStore, replicas: ReplicaCaller) -> None:
        self._cluster = cluster
        self._replicas = replicas

    async def run(self, name: str, write: Write) -> Trial:
        """A dry run asks nothing. Raises `unknown-deployment`, `revision-mismatch`, `not-testable`,
        `no-ready-replica`, and as `ReplicaCaller.ask`."""
        view = self._cluster.view()
        deployment = view.deployment(name)
        write.check(deployment, f"deployment {name!r}")
        replica = _replica(view, deployment)
        question = question_for(name, replica.status.endpoints)
        request_id = f"test-{secrets.token_hex(8)}"
        if write.dry_run:
            return Trial(name, replica.id, question.path, request_id, Said(), Outcome(b""))
        outcome = await self._replicas.ask(
            replica.status.where,
            question,
            model=name,
            request_id=request_id,
            within=LIMIT,
            prices=deployment.running.all_prices,
        )
        said = said_in(question.path, outcome.body)
        return Trial(name, replica.id, question.path, request_id, said, outcome)


def _replica(view: ClusterView, deployment: Deployment) -> Replica:
    """One that serves, of what the deployment is to be made of now if there is such a one."""
    ready = serving(view, deployment)
    if ready:
        return min(
            ready, key=lambda r: (not is_current(deployment, r), is_judged(deployment, r), r.id)
        )
    name = deployment.spec.name
    if not deployment.spec.replicas:
        raise PenstockError(
            f"{name!r} is scaled to 0 replicas: give it one with `penstock scale`",
            Code.NOT_TESTABLE,
        )
    raise Unavailable(
        f"no replica of {name!r} is ready: {prospect_of(view, deployment).detail}",
        Code.NO_READY_REPLICA,
    )
