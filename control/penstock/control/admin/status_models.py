"""What is wrong now, as the API shows it."""

from __future__ import annotations

from pydantic import Field

from penstock.control.admin.derived import Model
from penstock.control.admin.fields import one_of
from penstock.control.state.problems import ProblemKind


class ProblemModel(Model):
    """One thing that is wrong."""

    kind: str = one_of(*ProblemKind)
    subject: str = Field(description="what it is wrong with")
    text: str = Field(description="for a person: what is wrong, and what to do")


class ClusterStatusModel(Model):
    """How the cluster is."""

    problems: list[ProblemModel] = Field(description="empty: all is well")
