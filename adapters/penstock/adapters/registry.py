"""What may become of the registered versions: rules over values, which whoever keeps them applies.

The one promise: `name@version` means the same bytes for ever. So it is never given to other bytes,
not even after it was removed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from penstock.adapters.adapter import AdapterRef
from penstock.adapters.alias import Alias
from penstock.adapters.version import AdapterVersion, Digest, VersionState


class Taken(ValueError):
    """A `name@version` that means other bytes, or did once."""


class InUse(ValueError):
    """A version that an alias still names; the message says which."""


@dataclass(frozen=True, slots=True)
class Registered:
    """What came of a registration."""

    version: AdapterVersion  # as it stands in the registry
    is_new: bool


def register(
    known: Mapping[AdapterRef, AdapterVersion],
    removed: Collection[AdapterRef],
    version: AdapterVersion,
) -> Registered:
    """The same bytes for the same family are nothing new, whatever else was said of them; the first
    manifest stays. Raises `Taken`."""
    if version.ref in removed:
        raise Taken(f"{version.ref} was removed, and a version is never given again: take another")
    standing = known.get(version.ref)
    if standing is None:
        return Registered(version, is_new=True)
    if standing.manifest.digest != version.manifest.digest:
        raise Taken(
            f"{version.ref} is taken by other bytes (sha256 {standing.manifest.digest[:12]}, these "
            f"are {version.manifest.digest[:12]}): a version never changes, take another"
        )
    if standing.manifest.family != version.manifest.family:
        raise Taken(
            f"{version.ref} is registered for {standing.manifest.family}, not for "
            f"{version.manifest.family}: take another name or version"
        )
    return Registered(standing, is_new=False)


def retire(version: AdapterVersion, aliases: Iterable[Alias]) -> AdapterVersion:
    """The version, retired. Raises `InUse` while an alias names it, `BadMove` where it is so."""
    check_unnamed(version.ref, aliases, "retired")
    return version.moved_to(VersionState.RETIRED)


def check_unnamed(ref: AdapterRef, aliases: Iterable[Alias], change: str) -> None:
    """Raises `InUse` while an alias names the version; `change` is what that forbids, "retired"."""
    named_by = sorted(alias.full_name for alias in aliases if ref in alias.target.refs)
    if named_by:
        raise InUse(
            f"{ref} cannot be {change}: {', '.join(named_by)} name{'s' * (len(named_by) == 1)} it; "
            "move that first"
        )


def collectable(
    stored: Iterable[Digest], versions: Iterable[AdapterVersion], held: Collection[Digest]
) -> set[Digest]:
    """Stored content that nobody needs: of no registered version, and not `held`: by a replica, by
    a request that still runs under it, or by a registration that is under way."""
    return set(stored) - {version.manifest.digest for version in versions} - set(held)
