"""What kinds of documents have in common, and who applies them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from penstock.adapters.adapter import AdapterRef
from penstock.adapters.version import AdapterVersion
from penstock.control.managers.write import Write
from penstock.control.state.applied import Fields
from penstock.control.state.applying import Kind
from penstock.control.state.cluster import ClusterView

CACHED = 10_000  # specs whose fields are kept


@dataclass(frozen=True, slots=True)
class Applier:
    """Who applies documents, when and why, and what was fetched for it."""

    write: Write
    now: datetime
    fetched: Mapping[AdapterRef, AdapterVersion] = field(default_factory=dict)


class NamedKind(Kind):
    """One whose objects are known by name."""

    def __init__(self, by: Applier) -> None:
        self._by = by

    @abstractmethod
    def names(self, view: ClusterView) -> Iterable[str]:
        """Of all that are worth a document."""

    def fields(self, view: ClusterView, name: str) -> Fields:
        """Those of one that is there."""
        found = self.standing(view, name)
        return found.fields if found else {}
