"""Stores a report with the version that it is about, where `promote` looks for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from penstock.adapters.adapter import AdapterRef
from penstock.evals.admin_api import AdminApi
from penstock.evals.comparison.gate import Result
from penstock.evals.errors import EvalError

KIND: Final = "adapter-regression"
LARGEST_REPORT: Final = 600_000
"""Bytes of a report that is stored: the admin API takes bodies of 1 MiB."""


@dataclass(frozen=True, slots=True)
class Registered:
    """A version as the head knows it: what evidence has to be about."""

    digest: str
    family: str


class Registry(AdminApi):
    """The head's adapters."""

    def registered(self, ref: AdapterRef) -> Registered:
        """The version's digest and family. Raises `EvalError`."""
        told = self.get(_path(ref))
        try:
            return Registered(digest=told["digest"], family=told["family"])
        except (LookupError, TypeError) as error:
            raise EvalError(f"{self.url} tells of {ref} neither digest nor family") from error

    def store(self, ref: AdapterRef, evidence: Mapping[str, Any]) -> None:
        """Puts the evidence beside the version. Raises `EvalError`."""
        self.put(f"{_path(ref)}/evidence", evidence)


def evidence(report: Mapping[str, Any], registered: Registered) -> dict[str, Any]:
    """What is stored of a report."""
    against = report["baseline"]["adapter"]
    return {
        "kind": KIND,
        "passed": report["verdict"]["result"] == Result.PASS,
        "at": report["at"],
        "against": against,
        "dataset": report["dataset"]["sha256"],
        "family": registered.family,
        "digest": registered.digest,
        "report": shortened(report),
    }


def shortened(report: Mapping[str, Any]) -> dict[str, Any]:
    """The report, without what makes it too large: first the texts, then the prompts."""
    kept = dict(report)
    if _size(kept) > LARGEST_REPORT:
        kept["shortened"] = "texts are left out"
        kept["prompts"] = [_without_texts(each) for each in report["prompts"]]
    if _size(kept) > LARGEST_REPORT:
        kept["shortened"] = "prompts are left out"
        kept["prompts"] = []
    return kept


def _without_texts(prompt: Mapping[str, Any]) -> dict[str, Any]:
    sides = {side: {**prompt[side], "text": ""} for side in ("candidate", "baseline")}
    return {**prompt, "messages": [], "references": [], **sides}


def _size(report: Mapping[str, Any]) -> int:
    return len(json.dumps(report))


def _path(ref: AdapterRef) -> str:
    return f"adapters/{quote(str(ref), safe='@')}"
