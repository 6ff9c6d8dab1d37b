"""Why somebody changes a deployment, in their words."""

from __future__ import annotations

from typing import Annotated

from fastapi import Header

from penstock.control.admin.fields import Printable
from penstock.control.state.rollout.revision import LONGEST_REASON

Reason = Annotated[
    Printable,
    Header(
        alias="x-penstock-reason",
        max_length=LONGEST_REASON,
        description="why; kept with the revision that the change makes, and in the audit trail",
    ),
]
