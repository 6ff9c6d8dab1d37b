"""What the admin API tells of the memory that a replica would take."""

from __future__ import annotations

from pydantic import Field

from penstock.control.admin.derived import Shown
from penstock.control.state.fleet.memory import FitVerdict, MemoryFit


class FitLineModel(Shown):
    """A part of the sum."""

    what: str
    bytes: int
    note: str


class MemoryFitModel(Shown):
    """What a replica would take of a node's memory, or of each of its accelerators."""

    verdict: FitVerdict = Field(description="too_large: a start would be refused")
    lines: list[FitLineModel]
    needed_bytes: int
    free_bytes: int
    reason: str = Field(description="why it does not fit or is not known; empty: it fits")
    advice: list[str] = Field(description="settings and machines that it would fit")
    node: str = Field(description="that it would be put on; empty: none was asked")


def unasked() -> MemoryFitModel:
    """Where no node was asked."""
    return MemoryFitModel.drawn(MemoryFit(reason="told in a dry run of a new template alone"))
