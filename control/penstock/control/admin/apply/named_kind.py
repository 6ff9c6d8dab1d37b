"""What kinds of documents have in common, and who applies them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from penstock.adapters.adapter import AdapterRef
from penstock.adapters.version import AdapterVersion
from penstock.control.managers.write import Write
from penstock.control.state.applied import Fields
from penstock.control.state.applying import Standing
from penstock.control.state.cluster import ClusterView

CACHED = 10_000  # specs whose fields are kept


@dataclass(frozen=True, slots=True)
class Applier:
    """Who applies documents, when and why, and what was fetched for it."""

    write: Write
    now: datetime
    fetched: Mapping[AdapterRef, AdapterVersion] = field(default_factory=dict)


class NamedKind(ABC):
    """What most kinds have in common."""

    @property
    def defaults(self) -> Fields:
        return {}

    def __init__(self, by: Applier) -> None:
        self._by = by

    @abstractmethod
    def names(self, view: ClusterView) -> Iterable[str]:
        """Of all that are worth a document."""

    @abstractmethod
    def standing(self, view: ClusterView, name: str) -> Standing | None:
        """As `Kind`."""

    @abstractmethod
    def put(self, view: ClusterView, name: str, fields: Fields) -> ClusterView:
        """As `Kind`."""

    def fields(self, view: ClusterView, name: str) -> Fields:
        """Those of one that is there."""
        found = self.standing(view, name)
        return found.fields if found else {}

    def intended(self, view: ClusterView, name: str) -> Fields:
        return self.fields(view, name)

    def set_by(self, view: ClusterView, name: str, field_name: str) -> str:
        return ""

    def beside(self, standing: Fields, said: Fields) -> Fields:
        return standing

    def check(self, view: ClusterView, name: str) -> None:
        """Nothing else can stand in its way."""
        return

    def only_by_force(self, old: ClusterView, new: ClusterView, name: str) -> str:
        return ""

    def delete(self, view: ClusterView, name: str) -> ClusterView | None:
        return None
