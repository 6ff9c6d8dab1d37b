"""Router programs and MicroServing for people: what `status` and `describe` show alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.control.admin.rollout.models import DeploymentModel, ReplicaModel
from penstock.control.admin.rollout.program_models import ProgramAtModel, ProgramStatusModel
from penstock.control.cli.tables import Part, listing, notes

COLUMNS = ("name", "state", "program", "gateway", "asked", "decided", "failed", "moved tokens")


def program_parts(deployments: Sequence[DeploymentModel]) -> list[Part]:
    """Of those that ask one, where; nothing where none does."""
    asking = [(it.name, it.status.program) for it in deployments if it.status.program]
    if not asking:
        return []
    rows = [_row(name, it, at) for name, it in asking for at in it.gateways]
    return [
        listing("Programs", COLUMNS, rows),
        *notes((name, why) for name, it in asking for why in _reasons(it)),
    ]


def replica_note(it: ReplicaModel) -> tuple[str, str]:
    """What it is for, and where its MicroServing is."""
    rest = f"MicroServing by REST at {it.microserving_rest}" if it.microserving_rest else ""
    role = f"role {it.role}" if it.role else ""
    return it.id, ", ".join(filter(None, (role, rest)))


def _row(name: str, it: ProgramStatusModel, at: ProgramAtModel) -> tuple[str, ...]:
    state = "asked" if not at.unavailable else "starting" if it.starting else "not asked"
    counts = (at.asked, at.decided, at.failed, at.moved_tokens)
    return (name, state, it.name, at.gateway, *map(str, counts))


def _reasons(it: ProgramStatusModel) -> Iterator[str]:
    """Why it is not asked, what failed, and how its processes ended."""
    for at in it.gateways:
        if at.unavailable and not it.starting:
            yield f"gateway {at.gateway} does not ask: {at.unavailable}"
        for each in at.failures:
            said = f": {each.last}" if each.last else ""
            yield f"gateway {at.gateway}: {each.count} {each.reason}{said}"
    for on in it.nodes:
        if on.last_error or not on.running:
            state = "runs" if on.running else "starts" if it.starting else "does not run"
            said = f": {on.last_error}" if on.last_error else ""
            yield f"on node {on.node} it {state}, {on.restarts} restarts{said}"
