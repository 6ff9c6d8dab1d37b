"""The adapter registry as part of the view: versions, aliases and evidence, whole and immutable.

What may become of them is said by the rules of `penstock.adapters`; here stands what there is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeVar

from penstock.adapters.adapter import AdapterRef, BadAdapterRef
from penstock.adapters.alias import Alias
from penstock.adapters.promotion import Evidence, PromotionPolicy
from penstock.adapters.version import AdapterVersion, Digest, VersionState
from penstock.control.errors import Code, NotFound

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
Versions = Mapping[AdapterRef, AdapterVersion]
Aliases = Mapping[str, Alias]

EVIDENCE_KEPT = 20
"""Of one version, the newest."""


@dataclass(frozen=True, slots=True)
class Removed:
    """A version that was deleted: its name is never given again."""

    ref: AdapterRef
    digest: Digest


@dataclass(frozen=True, slots=True)
class StoredEvidence:
    """What an evaluation found of a version, and where its report is kept."""

    id: str
    ref: AdapterRef  # the version that it was told of
    evidence: Evidence
    report: str = ""  # SHA-256 of its report; empty: there is none


@dataclass(frozen=True, slots=True)
class AdapterRoute:
    """A version as gateways need it; fields as in routes.proto, `AdapterVersion`."""

    name: str
    digest: str
    base_family: str
    created: int  # seconds since 1970


@dataclass(frozen=True, slots=True)
class AdapterRegistry:
    """All that is registered. Mappings are read-only."""

    versions: Versions = field(default_factory=dict)
    removed: Mapping[AdapterRef, Removed] = field(default_factory=dict)
    aliases: Aliases = field(default_factory=dict)  # by "deployment:alias"
    evidence: Mapping[str, StoredEvidence] = field(default_factory=dict)  # by id
    policy: PromotionPolicy = field(default_factory=PromotionPolicy)
    unreadable: frozenset[str] = frozenset()  # names of stored documents that cannot be read
    _routes: list[tuple[AdapterRoute, ...]] = field(
        default_factory=list, init=False, repr=False, compare=False
    )
    _names: list[frozenset[str]] = field(
        default_factory=list, init=False, repr=False, compare=False
    )
    _naming: dict[AdapterRef, list[str]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _by_deployment: dict[str, list[Alias]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def is_whole(self) -> bool:
        """Whether this is all that is stored: what it does not name, nobody names."""
        return not self.unreadable

    def version(self, ref: str) -> AdapterVersion:
        """The version of this name; raises `unknown-adapter`."""
        try:
            return self.versions[AdapterRef.parse(ref)]
        except BadAdapterRef as error:
            raise NotFound(str(error), Code.UNKNOWN_ADAPTER) from None
        except KeyError:
            raise NotFound(
                f"no adapter {ref}{self._those_like(ref)}", Code.UNKNOWN_ADAPTER
            ) from None

    def alias(self, deployment: str, name: str) -> Alias:
        """The alias; raises `unknown-alias`."""
        try:
            return self.aliases[f"{deployment}:{name}"]
        except KeyError:
            known = ", ".join(alias.name for alias in self.aliases_of(deployment)) or "none"
            raise NotFound(
                f"{deployment} has no alias {name!r}: there are {known}", Code.UNKNOWN_ALIAS
            ) from None

    def aliases_of(self, deployment: str) -> Iterator[Alias]:
        """The aliases of one deployment, by name."""
        if not self._by_deployment and self.aliases:
            for _, alias in sorted(self.aliases.items()):
                self._by_deployment.setdefault(alias.deployment, []).append(alias)
        return iter(self._by_deployment.get(deployment, ()))

    def evidence_of(self, ref: AdapterRef) -> list[StoredEvidence]:
        """What was told of one version, the newest first."""
        told = (each for each in self.evidence.values() if each.ref == ref)
        return sorted(told, key=lambda each: (each.evidence.at, each.id), reverse=True)

    def routes(self) -> tuple[AdapterRoute, ...]:
        """What may be asked for, sorted by name; made once."""
        if not self._routes:
            named = sorted(self.versions.values(), key=lambda version: version.ref)
            self._routes.append(
                tuple(_route(v) for v in named if v.state is not VersionState.RETIRED)
            )
        return self._routes[0]

    def names(self) -> frozenset[str]:
        """Of all that may be asked for; made once."""
        if not self._names:
            self._names.append(frozenset(route.name for route in self.routes()))
        return self._names[0]

    def naming(self, ref: AdapterRef) -> list[str]:
        """The full names of the aliases that name the version now, sorted."""
        if not self._naming and self.aliases:
            for full_name, alias in sorted(self.aliases.items()):
                for each in alias.target.refs:
                    self._naming.setdefault(each, []).append(full_name)
        return self._naming.get(ref, [])

    def with_version(self, version: AdapterVersion) -> AdapterRegistry:
        """One version added or replaced."""
        return replace(self, versions=MappingProxyType({**self.versions, version.ref: version}))

    def without_version(self, ref: AdapterRef) -> AdapterRegistry:
        """One version less, with its evidence; its name stays taken."""
        gone = Removed(ref, self.versions[ref].manifest.digest)
        return replace(
            self,
            versions=_without(self.versions, ref),
            removed=MappingProxyType({**self.removed, ref: gone}),
            evidence={key: each for key, each in self.evidence.items() if each.ref != ref},
        )

    def with_alias(self, alias: Alias) -> AdapterRegistry:
        """One alias added or replaced."""
        return replace(self, aliases=MappingProxyType({**self.aliases, alias.full_name: alias}))

    def without_alias(self, alias: Alias) -> AdapterRegistry:
        """One alias less."""
        return replace(self, aliases=_without(self.aliases, alias.full_name))

    def without_aliases_of(self, deployment: str) -> AdapterRegistry:
        """Without those of a deployment that is no more."""
        left = {name: a for name, a in self.aliases.items() if a.deployment != deployment}
        return self if len(left) == len(self.aliases) else replace(self, aliases=left)

    def with_evidence(self, told: StoredEvidence) -> AdapterRegistry:
        """One finding more; the oldest of the version are forgotten."""
        all_evidence = {**self.evidence, told.id: told}
        of_it = sorted(
            (each for each in all_evidence.values() if each.ref == told.ref),
            key=lambda each: (each.evidence.at, each.id),
        )
        for old in of_it[:-EVIDENCE_KEPT]:
            del all_evidence[old.id]
        return replace(self, evidence=all_evidence)

    def with_policy(self, policy: PromotionPolicy) -> AdapterRegistry:
        """Another policy."""
        return replace(self, policy=policy)

    def _those_like(self, ref: str) -> str:
        name = ref.partition("@")[0]
        others = sorted(other.version for other in self.versions if other.name == name)
        if others:
            return f": of {name} there is {', '.join(others[-10:])}"
        names = sorted({other.name for other in self.versions})
        return f": registered are {', '.join(names[:20]) or 'none'}"


def _route(version: AdapterVersion) -> AdapterRoute:
    manifest = version.manifest
    return AdapterRoute(
        name=str(version.ref),
        digest=manifest.digest,
        base_family=manifest.family,
        created=int(manifest.registered_at.timestamp()),
    )


def _without(old: Mapping[_Key, _Value], key: _Key) -> Mapping[_Key, _Value]:
    return MappingProxyType({k: v for k, v in old.items() if k != key})
