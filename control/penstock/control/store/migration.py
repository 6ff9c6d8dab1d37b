"""Documents of older heads, brought to what `documents.py` reads. Pure.

Before a tenant's list of models held for fallbacks, no tenant said whether it does.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.control.store.store import Change, Key, Stored


def migrations(documents: Mapping[Key, Stored]) -> list[Change]:
    """What to write so that every document is of today's format; empty where all are."""
    return [
        Change(key, {**stored.document, "fallbacks": "listed"})
        for key, stored in sorted(documents.items())
        if key.kind == "tenant" and "degrade" in stored.document
        if "fallbacks" not in stored.document
    ]
