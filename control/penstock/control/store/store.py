"""The Store protocol: documents by key, changed in transactions, with an audit trail.

Each transaction is all or nothing and gets the next version, 1 for the first. A document remembers
the version that wrote it, so that a writer can insist on what it read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from penstock.control.store.events import EventStore
from penstock.control.store.usage import UsageStore

Document = Mapping[str, Any]  # JSON object

IDEMPOTENCY = "idempotency"
"""The kind of documents that no audit trail has: answers to keys, each a copy of what is there."""


PROGRAM = "program"
"""The kind of documents that are texts of router programs, by digest."""
CANARY_COUNTS = "canary_counts"
"""The kind of documents that are what gateways counted of a canary, by its uid."""
UNAUDITED = (IDEMPOTENCY, PROGRAM, CANARY_COUNTS)
"""What no audit trail has: a digest tells of a text, and counts grow each second."""


class Key(NamedTuple):
    """Names a document: what kind it is, and which one."""

    kind: str  # "deployment", "replica", "node", "counter"
    name: str


# Whose store it is, of which epoch, and whether it holds still or was restored.
IDENTITY = Key("cluster", "identity")


@dataclass(frozen=True, slots=True)
class Stored:
    """A document as the store holds it."""

    document: Document
    version: int  # of the transaction that wrote it


@dataclass(frozen=True, slots=True)
class Contents:
    """Everything in the store at one version; version 0 is the empty store."""

    version: int
    documents: Mapping[Key, Stored] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Change:
    """One document to write, or to delete where `document` is None."""

    key: Key
    document: Document | None
    # The version that the writer read, 0 for "not there"; None: whatever is there.
    expected_version: int | None = None


@dataclass(frozen=True, slots=True)
class Author:
    """Who asks for a transaction, and why: one line for the audit trail."""

    who: str  # "admin", "head"
    what: str  # "scale mini to 2"


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One document's change, as it is remembered."""

    version: int
    at: datetime
    who: str
    what: str
    key: Key
    before: Document | None
    after: Document | None


class DocumentStore(Protocol):
    """Versioned documents, changed in transactions."""

    async def load(self) -> Contents:
        """Everything, read in one transaction."""

    async def apply(self, changes: Sequence[Change], author: Author, at: datetime) -> int:
        """Writes all changes or none; returns the new version.

        Raises `revision-mismatch` where a document is not at its expected version, and
        StoreUnavailable where writing failed.
        """


class Store(DocumentStore, UsageStore, EventStore, Protocol):
    """Versioned documents that survive the death of the process, kill -9 included."""

    async def audit(
        self, limit: int, *, before: int | None = None, without: str = ""
    ) -> list[AuditEntry]:
        """The latest entries, newest first; of versions below `before` alone, and none of the
        author `without`."""

    async def close(self) -> None:
        """Lets go of the store; nothing may be asked of it afterwards."""
