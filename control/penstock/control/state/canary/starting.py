"""What a canary may be of, and how it begins. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

from penstock.adapters.adapter import AdapterRef, BadAdapterRef
from penstock.adapters.alias import BadAlias, Target, check_target
from penstock.control.errors import Code, InvalidInput, NotFound, PenstockError
from penstock.control.state.adapters.bases import check_taken
from penstock.control.state.canary.canary import Canary, CanaryState
from penstock.control.state.canary.spec import CanarySpec
from penstock.control.state.cluster import ClusterView
from penstock.control.state.rollout.deployment import Deployment
from penstock.control.state.rollout.engines import check_of_people
from penstock.control.state.rollout.evidence import check_share
from penstock.control.state.rollout.revision import Origin, last_served


def started(view: ClusterView, spec: CanarySpec, uid: str, now: datetime, origin: Origin) -> Canary:
    """A canary before its first step; one without a candidate waits for a revision. Raises
    `InvalidInput` for what nobody could share, `canary-owns`, and `conflict` for an engine."""
    with _field("target", spec.target):
        target = view.deployment(spec.target.deployment)
        stable = _of_alias(view, spec) if spec.target.alias else spec.target.deployment
    check_of_people(target)
    _check_shadow(view, spec)
    made = Canary(spec, uid, now, origin.by, origin.reason, stable=stable, candidate=spec.candidate)
    if not spec.candidate:
        why = f"the next revision of {spec.target} begins it"
        return replace(made, state=CanaryState.WAITING, why=why)
    with _field("candidate", spec.candidate):
        if spec.target.alias:
            _check_version(view, target, stable, spec.candidate)
        else:
            _check_deployment(view, target, spec.candidate)
            digest = view.deployment(spec.candidate).target.template_digest
            check_share(view, str(target.spec.name), digest, now)
    _check_free(view, spec)
    return made


def _of_alias(view: ClusterView, spec: CanarySpec) -> str:
    """The version that everybody of the alias has now."""
    target = view.adapters.alias(spec.target.deployment, spec.target.alias).target
    if len(target.refs) > 1:
        raise InvalidInput(
            f"it is split ({target}): give one version everybody, and the canary shares it out"
        )
    return str(target)


def _check_version(view: ClusterView, deployment: Deployment, stable: str, candidate: str) -> None:
    if candidate == stable:
        raise InvalidInput("the alias names it: take another version")
    try:
        target = Target.of(AdapterRef.parse(candidate))
        check_target(target, view.adapters.versions, deployment.spec.template.family)
    except (BadAdapterRef, BadAlias) as error:
        raise InvalidInput(str(error)) from None
    check_taken(view, deployment, target)


def _check_deployment(view: ClusterView, target: Deployment, candidate: str) -> None:
    if candidate == target.spec.name:
        raise InvalidInput("that is the target itself: name another deployment")
    found = view.deployment(candidate)
    check_of_people(found)
    for each in (target, found):
        if each.revision.is_under_way and last_served(each.revisions):
            raise PenstockError(
                f"revision {each.revision.number} of {each.spec.name} is being rolled out: wait"
                " until it serves",
                Code.CONFLICT,
            )
        if each.spec.sharing.canary:
            raise InvalidInput(
                f"{each.spec.name} shares its requests out by its setting canary: take that away"
                f" first, `penstock set {each.spec.name} canary=`"
            )


def _check_free(view: ClusterView, spec: CanarySpec) -> None:
    """Raises `canary-owns` where another one that has not ended has either arm."""
    arms = _arms(spec)
    for name, other in view.canaries.named.items():
        if name == spec.name or not other.is_active:
            continue
        if taken := arms & _arms(other.spec):
            raise PenstockError(
                f"{min(taken)} is an arm of canary {name!r}, which is {other.state}: abort that"
                " first",
                Code.CANARY_OWNS,
            )


def _arms(spec: CanarySpec) -> set[str]:
    return {str(spec.target), spec.candidate} - {""}


def _check_shadow(view: ClusterView, spec: CanarySpec) -> None:
    if not spec.shadow:
        return
    with _field("shadow", spec.shadow):
        shadow = view.shadows.shadow(spec.shadow).spec
        target, candidate = spec.target, spec.candidate
        if target.alias:
            candidate = f"{target.deployment}:{candidate}"
        if str(shadow.primary) != str(target):
            raise InvalidInput(f"it compares {shadow.primary}, and the target is {target}")
        if candidate and str(shadow.candidate) != candidate:
            raise InvalidInput(
                f"its candidate is {shadow.candidate}, and the canary's is {spec.candidate}"
            )


@contextmanager
def _field(what: str, value: object) -> Iterator[None]:
    """Says which field named what does not do."""
    try:
        yield
    except (NotFound, InvalidInput) as error:
        raise InvalidInput(f"{what} is {str(value)!r}: {error}") from None
