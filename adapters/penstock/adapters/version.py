"""A version in the registry: its bytes, what is known of them, and the state it is in."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NewType

from penstock.adapters.adapter import AdapterRef, BaseModelFamily
from penstock.adapters.shown import shown

CONFIG_FILE: Final = "adapter_config.json"
WEIGHTS_FILE: Final = "adapter_model.safetensors"
CONTENT_FILES: Final = (CONFIG_FILE, WEIGHTS_FILE)
"""What an adapter is made of; nothing else is kept of a source."""

Digest = NewType("Digest", str)
"""SHA-256 over an adapter's content, 64 hexadecimal digits: equal digests, equal answers."""

_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_LABEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,62}")
_MOST_LABELS: Final = 32
_LONGEST_VALUE: Final = 256


class BadManifest(ValueError):
    """Facts that no manifest may have; the message names the field and its value."""


def is_digest(text: str) -> bool:
    """Whether the text could be a `Digest`."""
    return _SHA256.fullmatch(text) is not None


def _is_short_text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= _LONGEST_VALUE and value.isprintable()


class VersionState(StrEnum):
    """How far a version has come."""

    CANDIDATE = "candidate"  # registered, not judged yet
    CANARY = "canary"  # trusted with a share
    LIVE = "live"  # trusted
    RETIRED = "retired"  # answers nobody; for good


NEXT_STATES: Final[Mapping[VersionState, frozenset[VersionState]]] = MappingProxyType(
    {
        VersionState.CANDIDATE: frozenset(
            {VersionState.CANARY, VersionState.LIVE, VersionState.RETIRED}
        ),
        VersionState.CANARY: frozenset({VersionState.LIVE, VersionState.RETIRED}),
        VersionState.LIVE: frozenset({VersionState.RETIRED}),
        VersionState.RETIRED: frozenset(),
    }
)
"""What a version may become. Backwards is no step: an alias is moved off it instead."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file of an adapter's content."""

    name: str
    sha256: str
    size: int  # bytes

    def __post_init__(self) -> None:
        """Refuses what is no file of an adapter."""
        if self.name not in CONTENT_FILES:
            raise BadManifest(f"{self.name!r} is no file of an adapter: {', '.join(CONTENT_FILES)}")
        if not is_digest(self.sha256):
            raise BadManifest(
                f"sha256 of {self.name} is {self.sha256!r}, not 64 hexadecimal digits"
            )
        if self.size < 1:
            raise BadManifest(f"{self.name} has {self.size} bytes")


def digest_of(files: tuple[StoredFile, ...]) -> Digest:
    """The digest of a content: over a line `<name> <sha256>` for each file, sorted."""
    if sorted(file.name for file in files) != sorted(CONTENT_FILES):
        names = ", ".join(file.name for file in files) or "nothing"
        raise BadManifest(f"an adapter is {' and '.join(CONTENT_FILES)}; here is {names}")
    lines = sorted(f"{file.name} {file.sha256}\n" for file in files)
    return Digest(hashlib.sha256("".join(lines).encode()).hexdigest())


@dataclass(frozen=True, slots=True)
class Manifest:
    """What is known of a version from its registration on. Nothing of it ever changes."""

    files: tuple[StoredFile, ...]
    family: BaseModelFamily
    rank: int
    modules: tuple[str, ...]
    source: str  # where it came from, for people: a directory, s3://..., hf:..., "upload"
    registered_at: datetime
    registered_by: str
    labels: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuses content that is not whole, and labels that could not be listed."""
        digest_of(self.files)
        if not isinstance(self.labels, Mapping):
            raise BadManifest(f"labels are {shown(self.labels)}, not names with values")
        if len(self.labels) > _MOST_LABELS:
            raise BadManifest(f"it has {len(self.labels)} labels, at most {_MOST_LABELS} are kept")
        for name, value in self.labels.items():
            if not isinstance(name, str) or not _LABEL.fullmatch(name):
                raise BadManifest(f"label {shown(name)} is not made of letters, digits, . _ / -")
            if not _is_short_text(value):
                raise BadManifest(f"label {name} has a value that is no short printable text")

    @property
    def digest(self) -> Digest:
        """Of its content."""
        return digest_of(self.files)

    @property
    def size(self) -> int:
        """Bytes of its content."""
        return sum(file.size for file in self.files)


@dataclass(frozen=True, slots=True)
class AdapterVersion:
    """`name@version` in the registry."""

    ref: AdapterRef
    manifest: Manifest
    state: VersionState = VersionState.CANDIDATE

    def moved_to(self, state: VersionState) -> AdapterVersion:
        """The version in its next state. Raises `BadMove` where that is no step."""
        if state not in NEXT_STATES[self.state]:
            raise BadMove(self.ref, self.state, state)
        return replace(self, state=state)


class BadMove(ValueError):
    """A state that a version cannot go to from where it is."""

    def __init__(self, ref: AdapterRef, at: VersionState, to: VersionState) -> None:
        """`at`: the state it is in."""
        steps = ", ".join(sorted(NEXT_STATES[at])) or "nothing"
        super().__init__(f"{ref} is {at} and cannot become {to}: what follows is {steps}")
