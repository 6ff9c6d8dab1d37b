"""What gateways say of a deployment's router program: values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProgramFailure:
    """Requests that went by the gateway's own policy, for one reason."""

    reason: str
    count: int
    last: str = ""  # what was said last, one line


@dataclass(frozen=True, slots=True)
class ProgramCounts:
    """What came of asking it at one gateway; fields as in routes.proto, `ProgramReport`."""

    digest: str
    unavailable: str = ""  # why it is not asked now; empty: it is
    asked: int = 0
    decided: int = 0
    failures: tuple[ProgramFailure, ...] = ()
    moved_tokens: int = 0
    moved_bytes: int = 0

    @property
    def failed(self) -> int:
        """For whatever reason."""
        return sum(each.count for each in self.failures)
