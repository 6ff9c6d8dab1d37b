"""What a deployment's spec changes in the view, and what has to hold of it beside the others."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Collection, Sequence
from datetime import datetime

from penstock.control.errors import Code, InvalidSpec, PenstockError
from penstock.control.shipped_programs import shipped_programs
from penstock.control.state.adapters.bases import check_aliases_fit
from penstock.control.state.canary.revisions import begun, check_plan
from penstock.control.state.cluster import ClusterView
from penstock.control.state.rollout.deployment import (
    Deployment,
    DeploymentName,
    DeploymentSpec,
    created,
)
from penstock.control.state.rollout.engines import check_of_people
from penstock.control.state.rollout.evidence import check_change, check_shares
from penstock.control.state.rollout.placing import specified
from penstock.control.state.rollout.revision import Origin
from penstock.control.state.routing.degrading import check_no_circle
from penstock.control.state.routing.limits import SelectionPolicy
from penstock.control.state.routing.program import check_args
from penstock.control.state.routing.program_setting import facts_of


def put_spec(
    view: ClusterView, spec: DeploymentSpec, now: datetime, origin: Origin, *, uid: str = ""
) -> ClusterView:
    """The view with a deployment of this spec. Raises `InvalidSpec`, `adapter-in-use`,
    `no-evidence`, and `conflict` where an engine has its name. `uid`: of a new one, where it is
    known before."""
    view = with_spec(view, spec, now, origin, uid=uid)
    check_beside(view, spec)
    return view


def with_spec(
    view: ClusterView, spec: DeploymentSpec, now: datetime, origin: Origin, *, uid: str = ""
) -> ClusterView:
    """The same, whatever else there is."""
    known = view.deployments.get(spec.name)
    check_of_people(known)
    check_program_fits(view, known, spec)
    if known is None:
        new = created(spec, now, uid=uid or secrets.token_hex(16), origin=origin)
        view = view.with_deployment(new)
        check_shares(view, None, spec.name, now)
        return view
    view = begun(specified(view, known, spec, now, origin), known, now)
    check_change(view, known, now)
    check_shares(view, known, spec.name, now)
    return view


def check_beside(view: ClusterView, spec: DeploymentSpec, ending: Collection[str] = ()) -> None:
    """Raises `InvalidSpec` for a circle of fallbacks or a canary of something else, and
    `adapter-in-use` where what an alias of it names does not fit. `ending`: deployments that are
    in no circle."""
    check_ways_end(view, spec, ending)
    check_plan(view, spec)
    check_aliases_fit(view, spec)


def check_ways_end(view: ClusterView, spec: DeploymentSpec, ending: Collection[str] = ()) -> None:
    """Raises `InvalidSpec` where fallbacks would lead from this deployment back to it."""

    def fallbacks_of(name: str) -> Sequence[str]:
        if name == spec.name:
            return spec.degrading.fallbacks
        other = view.deployments.get(DeploymentName(name))
        return other.spec.degrading.fallbacks if other else ()

    check_no_circle(spec.name, fallbacks_of, ending)


def check_program_fits(view: ClusterView, known: Deployment | None, spec: DeploymentSpec) -> None:
    """Raises `InvalidSpec` for a router program that there is not, or that takes no such arguments,
    and `conflict` where its engines would not do what it asks of them. `known`: as it was."""
    program, microserving = spec.sharing.program, bool(spec.template.microserving)
    asked = spec.sharing.policy is SelectionPolicy.PROGRAM
    if program is None or (known and _is_settled(known.spec, spec)):
        return
    shipped = shipped_programs()
    facts = facts_of(program, view.programs, shipped)
    if facts is None:
        there = f"there are {', '.join(shipped) or 'none'}" if program.name else "give its file"
        raise InvalidSpec(f"program: there is no {program.known_as}; {there}")
    if program.module.partition(".")[0] in sys.stdlib_module_names:
        raise InvalidSpec(f"program.module is {program.module!r}: that is Python's own, no program")
    if program.module:  # what it takes and asks, its node knows
        return
    check_args(program.known_as, facts, dict(program.args))
    if asked and facts.uses and not microserving:
        raise PenstockError(
            f"the program {program.known_as} asks engines for {', '.join(facts.uses)}, and"
            f" microserving of {spec.name} is off: set it on, or choose another program",
            Code.CONFLICT,
        )


def _is_settled(old: DeploymentSpec, new: DeploymentSpec) -> bool:
    """Whether nothing has changed that a program follows from."""
    return (
        old.sharing.program == new.sharing.program
        and old.sharing.policy == new.sharing.policy
        and old.template.microserving == new.template.microserving
    )
