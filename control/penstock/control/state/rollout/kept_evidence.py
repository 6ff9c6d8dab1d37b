"""What was found of what replicas are made of, and the policy that asks for it. Pure.

Evidence is of a template, whatever deployment it was tried in: the same digest, the same replicas.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Final

OF_A_TEMPLATE: Final = 20
IN_ALL: Final = 2000
BY_CANARY: Final = "canary"
"""The kind of evidence that a canary leaves."""


class Stage(StrEnum):
    """How many clients have a template."""

    CANARY = "canary"  # a share of them
    LIVE = "live"  # all


@dataclass(frozen=True, slots=True)
class TemplateEvidence:
    """One finding."""

    id: str
    digest: str  # of the template
    deployment: str  # that it was told of
    revision: int  # of it
    kind: str  # "quantization-regression", "shadow", "canary", ...
    passed: bool
    at: datetime
    report: str = ""  # SHA-256 of its report; empty: there is none


@dataclass(frozen=True, slots=True)
class DeploymentPolicy:
    """What has to be found before clients have a template."""

    evidence_for: tuple[Stage, ...] = ()
    kind: str = ""  # of the evidence; empty: any
    not_older_than_hours: int = 0  # 0: as old as it may be


@dataclass(frozen=True, slots=True)
class KeptEvidence:
    """Part of the cluster view. Mappings are read-only."""

    told: Mapping[str, TemplateEvidence] = field(default_factory=dict)  # by id
    policy: DeploymentPolicy = field(default_factory=DeploymentPolicy)
    is_whole: bool = True  # all that is stored could be read

    def of(self, digest: str) -> list[TemplateEvidence]:
        """What was found of a template, the newest first."""
        found = (each for each in self.told.values() if each.digest == digest)
        return sorted(found, key=_age, reverse=True)

    def having(self, told: TemplateEvidence) -> KeptEvidence:
        """With one more; the oldest are forgotten, of the template and of all."""
        kept = {**self.told, told.id: told}
        of_it = [each for each in kept.values() if each.digest == told.digest]
        for old in (
            *sorted(of_it, key=_age)[:-OF_A_TEMPLATE],
            *sorted(kept.values(), key=_age)[:-IN_ALL],
        ):
            kept.pop(old.id, None)
        return replace(self, told=MappingProxyType(kept))


def _age(told: TemplateEvidence) -> tuple[datetime, bool, str]:
    return (told.at, not told.passed, told.id)
