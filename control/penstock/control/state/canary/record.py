"""A canary's record: what is kept as evidence with what it promoted. Pure."""

from __future__ import annotations

from typing import Any

from penstock.control.declared.codec import Codec
from penstock.control.state.canary.canary import Canary
from penstock.control.state.canary.counts import Counts

KIND = "canary"
"""Of the evidence."""

_CANARIES, _COUNTS = Codec(Canary), Codec(Counts)


def record_of(canary: Canary, counts: Counts, shadow: Any) -> dict[str, Any]:
    """How it went, what its last step counted, and the report of the shadow that it names; none:
    it names none, or nobody can tell."""
    return {
        "canary": _CANARIES.document(canary),
        "counts": _COUNTS.document(counts),
        "shadow": shadow,
    }
