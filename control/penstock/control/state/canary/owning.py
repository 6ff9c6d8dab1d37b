"""What a canary that goes on has for itself: nobody else moves its arms. Pure.

It is seen from what a change comes to, whichever call or document asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from penstock.adapters.adapter import AdapterRef
from penstock.adapters.version import VersionState
from penstock.control.state.canary.canary import Canary
from penstock.control.state.cluster import ClusterView
from penstock.control.state.rollout.deployment import DeploymentName


class Owned(NamedTuple):
    """Something that a change would move, and the canary that has it."""

    canary: Canary
    kind: str  # deployment, alias or adapter
    name: str
    what: str  # of it: the beginning of a sentence

    def __str__(self) -> str:
        """Why the change is refused, and what to do."""
        name = self.canary.spec.name
        return (
            f"{self.what} is canary {name}'s, which is {self.canary.state}: `penstock canary abort"
            f" {name}` first, or ask with abort_canary (--abort-canary)"
        )


def owned(before: ClusterView, after: ClusterView, by: str = "") -> tuple[Owned, ...]:
    """What a change from one view to the other takes from canaries that go on. `by`: the canary
    that makes the change, as its promotion does."""
    return tuple(
        each
        for name, canary in before.canaries.named.items()
        if canary.is_active and name != by and name in after.canaries.named
        for each in _taken(before, after, canary)
    )


def _taken(before: ClusterView, after: ClusterView, canary: Canary) -> Iterator[Owned]:
    target = canary.target
    if target.alias:
        yield from _alias(before, after, canary)
        for ref in (canary.stable, canary.candidate):
            yield from _version(before, after, canary, AdapterRef.parse(ref))
        return
    yield from _deployment(before, after, canary, target.deployment)
    if canary.spec.candidate:
        yield from _deployment(before, after, canary, canary.spec.candidate)


def _deployment(
    before: ClusterView, after: ClusterView, canary: Canary, name: str
) -> Iterator[Owned]:
    was, now = (view.deployments.get(DeploymentName(name)) for view in (before, after))
    if was is None:
        return
    judges_revision = bool(canary.candidate_digest)
    if now is None or now.uid != was.uid:
        what = f"deployment {name}"
    elif now.template_digest != was.template_digest:
        what = f"what {name} is made of"
    elif now.spec.sharing.canary != was.spec.sharing.canary:
        what = f"canary of {name}"
    elif judges_revision and (now.revision != was.revision or now.paused > was.paused):
        what = f"the rollout of {name}"
    else:
        return
    yield Owned(canary, "deployment", name, what)


def _alias(before: ClusterView, after: ClusterView, canary: Canary) -> Iterator[Owned]:
    name = str(canary.target)
    was, now = (view.adapters.aliases.get(name) for view in (before, after))
    if was and (now is None or now.target != was.target):
        yield Owned(canary, "alias", name, f"alias {name}")


def _version(
    before: ClusterView, after: ClusterView, canary: Canary, ref: AdapterRef
) -> Iterator[Owned]:
    was, now = (view.adapters.versions.get(ref) for view in (before, after))
    retired = VersionState.RETIRED
    if was and (now is None or (now.state is retired and was.state is not retired)):
        yield Owned(canary, "adapter", str(ref), f"adapter {ref}")
