"""What was found of deployments' revisions, and the policy that asks for it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol

from penstock.control.errors import NotFound
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.write import Write
from penstock.control.state.cluster import ClusterView
from penstock.control.state.rollout.kept_evidence import DeploymentPolicy, TemplateEvidence
from penstock.control.state.rollout.revision import revision_of


class Reports(Protocol):
    """Where reports of evidence are kept."""

    def kept(self, report: Mapping[str, Any] | None) -> AbstractAsyncContextManager[str]:
        """Keeps one until the block ends, and while evidence names it; gives its digest. Raises
        `StoreUnavailable`."""

    async def report(self, digest: str) -> Any:
        """One that is kept; None where there is none."""


@dataclass(frozen=True, slots=True)
class Found:
    """What somebody found of a revision."""

    kind: str
    passed: bool
    at: datetime
    report: Mapping[str, Any] | None


class EvidenceManager:
    """Changes the view through the cluster store. All that write raise `StoreUnavailable`,
    `HoldsStill` and `revision-mismatch`."""

    def __init__(self, cluster: ClusterStore, reports: Reports) -> None:
        self._cluster = cluster
        self._reports = reports

    @property
    def policy(self) -> DeploymentPolicy:
        """What is asked for now."""
        return self._cluster.view().evidence.policy

    def of(self, name: str, number: int) -> list[TemplateEvidence]:
        """What was found of the template of a revision, the newest first. Raises
        `unknown-deployment` and `unknown-revision`."""
        view = self._cluster.view()
        revision = revision_of(view.deployment(name).revisions, number)
        return view.evidence.of(revision.template_digest)

    async def one(self, name: str, number: int, evidence_id: str) -> tuple[TemplateEvidence, Any]:
        """One finding of these with its report, None where it has none. Raises likewise, and
        `not-found`."""
        for each in self.of(name, number):
            if each.id == evidence_id:
                return each, await self._reports.report(each.report)
        raise NotFound(f"revision {number} of {name} has no evidence {evidence_id!r}")

    async def add(self, name: str, number: int, found: Found, write: Write) -> TemplateEvidence:
        """Keeps what was found of a revision. Raises `unknown-deployment` and
        `unknown-revision`."""
        made: list[TemplateEvidence] = []
        own = f"ev_{secrets.token_hex(8)}"

        async with self._reports.kept(None if write.dry_run else found.report) as report:

            def step(view: ClusterView) -> ClusterView:
                known = view.deployment(name)
                write.check(known, f"deployment {name!r}")
                digest = revision_of(known.revisions, number).template_digest
                kind, passed = found.kind, found.passed
                told = TemplateEvidence(own, digest, name, number, kind, passed, found.at, report)
                made.append(told)
                return replace(view, evidence=view.evidence.having(told))

            verdict = "passed" if found.passed else "failed"
            what = f"revision {number} of {name} {verdict} {found.kind}"
            await write.apply(self._cluster, step, what)
        return made[-1]

    async def set_policy(self, policy: DeploymentPolicy, write: Write) -> DeploymentPolicy:
        """Asks for something else from now on."""

        def step(view: ClusterView) -> ClusterView:
            write.check(view.evidence.policy, "the policy")
            return replace(view, evidence=replace(view.evidence, policy=policy))

        what = f"ask for evidence before {', '.join(policy.evidence_for) or 'nothing'}"
        return (await write.apply(self._cluster, step, what)).evidence.policy
