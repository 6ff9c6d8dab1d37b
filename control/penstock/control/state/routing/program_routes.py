"""Whom gateways ask where requests go, and what runs beside them: values for the wire. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.control.errors import InvalidSpec
from penstock.control.state.cluster import ClusterView
from penstock.control.state.rollout.deployment import Deployment, DeploymentName
from penstock.control.state.routing.limits import SelectionPolicy
from penstock.control.state.routing.program import Texts
from penstock.control.state.routing.program_setting import Program, Sees, digest_in, facts_of


@dataclass(frozen=True, slots=True)
class ProgramRoute:
    """A deployment's program as gateways ask it; fields as in routes.proto, `Program`."""

    digest: str
    name: str
    args: bytes
    uses: tuple[str, ...]
    sees_tokens: bool
    deadline_ms: int
    transfer_deadline_ms: int


@dataclass(frozen=True, slots=True)
class RouterProgram:
    """A program as node agents run it; fields as in nodes.proto."""

    deployment_uid: str
    deployment: DeploymentName
    digest: str
    name: str
    module: str


def program_route(deployment: Deployment, stored: Texts, shipped: Texts) -> ProgramRoute | None:
    """Whom its requests ask; None: nobody, and where its program is not there any more."""
    sharing = deployment.spec.sharing
    program = _asked(deployment)
    try:
        facts = facts_of(program, stored, shipped) if program else None
    except InvalidSpec:  # what an older head took for a program
        facts = None
    if program is None or facts is None:
        return None
    return ProgramRoute(
        digest_in(program, shipped),
        program.known_as,
        program.args_json,
        facts.uses,
        sharing.sees is Sees.TOKENS,
        sharing.program_deadline_ms,
        sharing.transfer_deadline_ms,
    )


def router_programs(view: ClusterView, shipped: Texts) -> Iterator[RouterProgram]:
    """All that are to run beside gateways, in the order of their deployments."""
    for name, deployment in sorted(view.deployments.items()):
        program = _asked(deployment)
        if program and (digest := digest_in(program, shipped)):
            yield RouterProgram(deployment.uid, name, digest, program.name, program.module)


def _asked(deployment: Deployment) -> Program | None:
    sharing = deployment.spec.sharing
    return sharing.program if sharing.policy is SelectionPolicy.PROGRAM else None
