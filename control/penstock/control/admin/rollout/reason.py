"""Why somebody changes a deployment, in their words."""

from __future__ import annotations

from typing import Annotated

from fastapi import Header
from pydantic import BeforeValidator

from penstock.control.admin.fields import Printable
from penstock.control.state.rollout.revision import LONGEST_REASON


def _as_utf8(text: str) -> str:
    """Headers come as Latin-1; what is meant is UTF-8, where it is any."""
    try:
        return text.encode("latin-1").decode()
    except UnicodeError:
        return text


Reason = Annotated[
    Printable,
    BeforeValidator(_as_utf8),
    Header(
        alias="x-penstock-reason",
        max_length=LONGEST_REASON,
        description="why; kept with the revision that the change makes, and in the audit trail",
    ),
]
