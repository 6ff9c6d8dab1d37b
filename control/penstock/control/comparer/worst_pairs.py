"""The worst pairs of a shadow, as its report shows them, read from what is kept."""

from __future__ import annotations

import json
from collections.abc import Iterable

from penstock.control.comparer.records import Records
from penstock.evals.comparison.recorded_pair import Said
from penstock.evals.comparison.worst import FEW, Kept, Worst


def kept_of(records: Records, uid: str, gates: Iterable[str]) -> Kept:
    """All that there is to say of a shadow's texts."""
    held = records.held(uid)
    return Kept(
        held.kept,
        held.unreadable,
        records.left_out(uid),
        records.vault.trouble,
        tuple(
            Worst(gate, difference, Said.of(json.loads(text)))
            for gate in gates
            for difference, text in records.worst(uid, gate, FEW)
        ),
    )
