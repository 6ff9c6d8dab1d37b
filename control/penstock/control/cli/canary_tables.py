"""Canaries in lists."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.control.admin.canary.models import CanaryRunModel
from penstock.control.cli.tables import Part, listing, notes

COLUMNS = ("name", "state", "target", "candidate", "step", "share")


def canary_parts(canaries: Sequence[CanaryRunModel]) -> list[Part]:
    """Each on a row, with what is missing or why it ended; nothing where there is none."""
    if not canaries:
        return []
    return [
        listing("Canaries", COLUMNS, map(canary_row, canaries)),
        *notes((it.name, it.why) for it in canaries),
    ]


def canary_row(it: CanaryRunModel) -> tuple[str, ...]:
    """One."""
    step, candidate = f"{it.step} of {len(it.steps)}", it.candidate_arm or "each new revision"
    return (it.name, it.state, it.target, candidate, step, share(it.permille))


def share(permille: int) -> str:
    """As people say it."""
    return f"{permille / 10:g} %"
