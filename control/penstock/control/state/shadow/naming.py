"""Whether what a shadow names is there, and fits. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from penstock.adapters.adapter import AdapterRef, BadAdapterRef
from penstock.adapters.alias import BadAlias, Target, check_target
from penstock.control.errors import InvalidInput, NotFound
from penstock.control.state.adapters.bases import check_taken
from penstock.control.state.cluster import ClusterView
from penstock.control.state.rollout.deployment import Deployment
from penstock.control.state.shadow.spec import Primary, ShadowSpec
from penstock.control.state.tenancy.tenants import Shadowing


def check_named(view: ClusterView, spec: ShadowSpec) -> None:
    """Raises InvalidInput for what nobody could repeat, or not without a limit to its cost."""
    primary, candidate = check_ends(view, spec)
    check_tenants(view, spec.tenants)
    for asked in (candidate, *_asked(view, spec)):
        _check_costs(spec, asked, "")
    if spec.self_permille != 0:
        _check_costs(spec, primary, ", or self_permille 0 not to ask it again")


def check_ends(view: ClusterView, spec: ShadowSpec) -> tuple[Deployment, Deployment]:
    """Primary and candidate; raises InvalidInput where one lacks what is named, or is not there."""
    primary = check_primary(view, spec.primary)
    with _field("candidate", spec.candidate):
        candidate = view.deployment(spec.candidate.deployment)
        if spec.candidate.adapter:
            _check_adapter(view, candidate, spec.candidate.adapter)
    _asked(view, spec)
    return primary, candidate


def check_primary(view: ClusterView, named: Primary) -> Deployment:
    """The deployment; raises InvalidInput where it or its alias is not there."""
    with _field("primary", named):
        primary = view.deployment(named.deployment)
        if named.alias:
            view.adapters.alias(named.deployment, named.alias)
    return primary


def check_tenants(view: ClusterView, names: Iterable[str]) -> None:
    """Raises InvalidInput for those that are not there, or do not allow it."""
    for name in names:
        with _field("tenants", name):
            if view.tenancy.tenant(name).spec.shadow is Shadowing.NEVER:
                raise InvalidInput(
                    "this tenant's requests are never repeated and never recorded (shadow=never)"
                )


def _asked(view: ClusterView, spec: ShadowSpec) -> list[Deployment]:
    """Who is asked about its pairs."""
    found = []
    for field, name in spec.asked:
        with _field(field, name):
            found.append(view.deployment(name))
    return found


def _check_adapter(view: ClusterView, deployment: Deployment, adapter: str) -> None:
    try:
        target = Target.of(AdapterRef.parse(adapter))
        check_target(target, view.adapters.versions, deployment.spec.template.family)
    except (BadAdapterRef, BadAlias) as error:
        raise InvalidInput(str(error)) from None
    check_taken(view, deployment, target)


def _check_costs(spec: ShadowSpec, asked: Deployment, otherwise: str) -> None:
    if asked.spec.template.is_managed and not spec.usd_per_day:
        raise InvalidInput(
            f"{asked.spec.name} is a provider, which costs money: say usd_per_day{otherwise}"
        )


@contextmanager
def _field(what: str, value: object) -> Iterator[None]:
    """Says which field named what is not there."""
    try:
        yield
    except (NotFound, InvalidInput) as error:
        raise InvalidInput(f"{what} is {str(value)!r}: {error}") from None
