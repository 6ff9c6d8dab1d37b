"""Objectives of deployments for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from penstock.control.admin.rollout.load_models import BurnModel
from penstock.control.admin.rollout.models import DeploymentModel
from penstock.control.cli.tables import Part, listing, notes
from penstock.control.state.routing.slo import WINDOWS

COLUMNS = ("name", "state", "objective", "5 min", "1 h", "6 h", "asked")
WITHIN = 1.0  # of a burn rate: no more is bad than may be


def objective_parts(deployments: Sequence[DeploymentModel]) -> list[Part]:
    """Of those that have any: how fast what may be bad is used up, 1.0 being just within; nothing
    where none has."""
    rows = [row for it in deployments for row in _rows(it)]
    if not rows:
        return []
    over = [
        (row[0], f"{row[2]} is not kept: {row[3]} times what may be bad")
        for row in rows
        if row[1] == "burning"
    ]
    return [listing("Objectives", COLUMNS, rows), *notes(over)]


def _rows(it: DeploymentModel) -> Iterator[tuple[str, ...]]:
    for objective, told in groupby(it.status.slo, key=lambda burn: burn.objective):
        found = {burn.window_seconds: burn for burn in told}
        burns = [found.get(int(window.total_seconds())) for window in WINDOWS]
        first = next(iter(found.values()))
        yield it.name, _state(burns[0]), objective, *map(_rate, burns), first.target


def _state(newest: BurnModel | None) -> str:
    if newest is None or not newest.requests:
        return "no requests"
    return "burning" if newest.burn_rate > WITHIN else "kept"


def _rate(burn: BurnModel | None) -> str:
    """Empty where nothing was judged."""
    return f"{burn.burn_rate:.2f}" if burn and burn.requests else ""
