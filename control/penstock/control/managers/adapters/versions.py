"""Adapter versions: registered, promoted, retired, removed, and what was found out about them.

The rules are those of `penstock.adapters`; here they meet the view, the store and the bytes.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from penstock.adapters import promotion, registry
from penstock.adapters.adapter import AdapterRef, BadAdapterRef, BaseModelFamily
from penstock.adapters.fitness import FamilyLimits
from penstock.adapters.promotion import Evidence, PromotionPolicy
from penstock.adapters.version import AdapterVersion, BadManifest, BadMove, Manifest, VersionState
from penstock.control.errors import Code, InvalidInput, PenstockError, StoreUnavailable
from penstock.control.managers.adapters.library import AdapterLibrary
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.write import Write
from penstock.control.state.adapters.bases import family_named, limits_of, revision_of
from penstock.control.state.adapters.registry import AdapterRegistry, StoredEvidence
from penstock.control.state.cluster import ClusterView
from penstock.control.store.adapters.content import TakenIn
from penstock.control.supervision.clock import Clock

log = logging.getLogger(__name__)

UPLOAD = "upload"
"""The source of what was sent along."""


@dataclass(frozen=True, slots=True)
class NewAdapter:
    """What is asked for: a version, and what it was made for."""

    name: str
    version: str
    base: str  # a deployment, or the model that it serves
    labels: Mapping[str, str] = field(default_factory=dict)


class Reports(Protocol):
    """Where the reports of evaluations are kept."""

    def put(self, report: bytes) -> str:
        """Keeps one; its SHA-256. Blocks. Raises `StoreUnavailable`."""

    def get(self, digest: str) -> bytes | None:
        """One that is kept. Blocks."""

    def keep_only(self, digests: frozenset[str]) -> None:
        """Throws all others away. Blocks."""


class BaseModels(Protocol):
    """What is known of the models that adapters are made for."""

    def shapes(self, model: str, revision: str) -> Mapping[str, tuple[int, int]]:
        """Inputs and outputs of each module of one, by its path as adapters name it; empty where
        they are not known. Blocks."""


class AdapterManager:
    """Changes the registry through the cluster store, so that every gateway is told at once.

    All raise `StoreUnavailable`, `HoldsStill` and `revision-mismatch`, then nothing is changed.
    """

    def __init__(
        self,
        cluster: ClusterStore,
        library: AdapterLibrary,
        models: BaseModels,
        reports: Reports,
        clock: Clock,
    ) -> None:
        self._cluster = cluster
        self._library = library
        self._models = models
        self._reports = reports
        self._clock = clock
        self._telling = asyncio.Lock()  # a report has no name until its evidence is stored

    @property
    def view(self) -> ClusterView:
        """What there is."""
        return self._cluster.view()

    async def register(
        self, spec: NewAdapter, source: str, write: Write
    ) -> tuple[AdapterVersion, bool]:
        """Fetches an adapter from its source and registers it; the version as it stands, whether
        it is new. Raises `InvalidInput`, `BadAdapter`, `adapter-taken` and `Unavailable`."""
        async with self.fetched(self.view, spec, source, write.who) as version:
            return await self._commit(version, write)

    @asynccontextmanager
    async def fetched(
        self, view: ClusterView, spec: NewAdapter, source: str, who: str
    ) -> AsyncIterator[AdapterVersion]:
        """A version as it would be registered; its bytes are here until the block ends, and stay
        where it is registered by then. `view`: what it is to fit. Raises as `register`."""
        ref, family = self._checked(view, spec)
        async with self._library.fetched(source, await self._limits(view, family)) as content:
            yield self._version(spec, ref, family, content, source, who)

    async def register_upload(
        self, spec: NewAdapter, directory: Path, write: Write
    ) -> tuple[AdapterVersion, bool]:
        """The same, of files that were sent along."""
        ref, family = self._checked(self.view, spec)
        async with self._library.taken(directory, await self._limits(self.view, family)) as content:
            version = self._version(spec, ref, family, content, UPLOAD, write.who)
            return await self._commit(version, write)

    async def promote(self, ref: str, to: VersionState, write: Write) -> AdapterVersion:
        """Brings a version forward. Raises `unknown-adapter` and `not-promoted`."""

        def step(adapters: AdapterRegistry) -> AdapterVersion:
            version = _as_read(adapters, ref, write)
            evidence = [each.evidence for each in adapters.evidence_of(version.ref)]
            policy, now = adapters.policy, self._clock.now()
            return promotion.promote(version, to, policy, evidence, now)

        return await self._change(step, write, f"promote {ref} to {to}")

    async def retire(self, ref: str, write: Write) -> AdapterVersion:
        """Nobody may ask for it any more. Raises as `remove`, and `not-promoted`."""

        def step(adapters: AdapterRegistry) -> AdapterVersion:
            _check_whole(adapters)
            return registry.retire(_as_read(adapters, ref, write), adapters.aliases.values())

        return await self._change(step, write, f"retire {ref}")

    async def remove(self, ref: str, write: Write) -> None:
        """Deletes a version for good; its bytes go once no replica holds them. Raises
        `unknown-adapter` and `adapter-in-use`."""

        def step(view: ClusterView) -> ClusterView:
            version = _as_read(view.adapters, ref, write)
            _check_whole(view.adapters)
            registry.check_unnamed(version.ref, view.adapters.aliases.values(), "removed")
            if not write.dry_run:
                self._library.let_go(version.manifest.digest)
            return replace(view, adapters=view.adapters.without_version(version.ref))

        with _told():
            await write.apply(self._cluster, step, f"remove {ref}")
        async with self._telling:
            await self._collect_reports()

    async def add_evidence(
        self, ref: str, evidence: Evidence, report: Mapping[str, Any] | None, write: Write
    ) -> StoredEvidence:
        """Keeps what an evaluation found. Raises `unknown-adapter`, and `adapter-taken` where it
        was found of other bytes, or of models of another family."""
        self._check_evidence(ref, evidence)
        async with self.kept(None if write.dry_run else report) as kept:
            name = AdapterRef.parse(ref)
            told = StoredEvidence(f"ev_{secrets.token_hex(8)}", name, evidence, kept)

            def step(view: ClusterView) -> ClusterView:
                _as_read(view.adapters, ref, write)
                return replace(view, adapters=view.adapters.with_evidence(told))

            verdict = "passed" if evidence.passed else "failed"
            await write.apply(self._cluster, step, f"{ref} {verdict} {evidence.kind}")
        return told

    @asynccontextmanager
    async def kept(self, report: Mapping[str, Any] | None) -> AsyncIterator[str]:
        """Keeps a report until the block ends, and for as long as evidence names it then; its
        digest. Raises `StoreUnavailable`."""
        text = json.dumps(report, separators=(",", ":")).encode() if report is not None else b""
        async with self._telling:
            yield await asyncio.to_thread(self._reports.put, text) if text else ""
            await self._collect_reports()

    async def report(self, digest: str) -> Any:
        """A report that is kept; none where there is none."""
        text = await asyncio.to_thread(self._reports.get, digest) if digest else None
        return json.loads(text) if text else None

    async def set_policy(self, policy: PromotionPolicy, write: Write) -> PromotionPolicy:
        """Says what a promotion asks for from now on."""

        def step(view: ClusterView) -> ClusterView:
            write.check(view.adapters.policy, "the policy")
            return replace(view, adapters=view.adapters.with_policy(policy))

        what = f"ask for evidence before {', '.join(policy.evidence_for) or 'nothing'}"
        return (await write.apply(self._cluster, step, what)).adapters.policy

    def _checked(self, view: ClusterView, spec: NewAdapter) -> tuple[AdapterRef, BaseModelFamily]:
        """What needs no bytes to be refused."""
        try:
            ref = AdapterRef(spec.name, spec.version)
        except BadAdapterRef as error:
            raise InvalidInput(str(error)) from None
        if str(ref) in view.adapters.unreadable:
            raise PenstockError(
                f"{ref} is in the store, where this version of the head cannot read it",
                Code.ADAPTER_TAKEN,
            )
        if ref in view.adapters.removed:
            raise PenstockError(
                f"{ref} was removed, and a version is never given again: take another",
                Code.ADAPTER_TAKEN,
            )
        return ref, family_named(view, spec.base)

    async def _limits(self, view: ClusterView, family: BaseModelFamily) -> FamilyLimits:
        """What the family takes, with the shapes of its model where this machine can read it;
        elsewhere its replicas look at them when they load the adapter."""
        limits, revision = limits_of(view, family), revision_of(view, family)
        if revision is None:
            return limits
        shapes = await asyncio.to_thread(self._models.shapes, family, revision)
        return replace(limits, shapes=shapes)

    def _version(
        self,
        spec: NewAdapter,
        ref: AdapterRef,
        family: BaseModelFamily,
        content: TakenIn,
        source: str,
        who: str,
    ) -> AdapterVersion:
        with _told():
            manifest = Manifest(
                files=content.files,
                family=family,
                rank=content.facts.rank,
                modules=content.facts.modules,
                source=source,
                registered_at=self._clock.now(),
                registered_by=who,
                labels=dict(spec.labels),
            )
        return AdapterVersion(ref, manifest)

    async def _commit(self, version: AdapterVersion, write: Write) -> tuple[AdapterVersion, bool]:
        found: list[registry.Registered] = []

        def step(view: ClusterView) -> ClusterView:
            adapters, registered = with_registered(view.adapters, version)
            found.append(registered)
            return replace(view, adapters=adapters)

        family = version.manifest.family
        await write.apply(self._cluster, step, f"register {version.ref} for {family}")
        return found[-1].version, found[-1].is_new

    async def _change(
        self, step: Callable[[AdapterRegistry], AdapterVersion], write: Write, what: str
    ) -> AdapterVersion:
        changed: list[AdapterVersion] = []

        def on_view(view: ClusterView) -> ClusterView:
            changed.append(step(view.adapters))
            return replace(view, adapters=view.adapters.with_version(changed[-1]))

        with _told():
            await write.apply(self._cluster, on_view, what)
        return changed[-1]

    def _check_evidence(self, ref: str, evidence: Evidence) -> None:
        manifest = self.view.adapters.version(ref).manifest
        if evidence.of != manifest.digest:
            raise PenstockError(
                f"the evidence is of other bytes (sha256 {evidence.of[:12]}) than {ref}, which is "
                f"{manifest.digest[:12]}",
                Code.ADAPTER_TAKEN,
            )
        if evidence.family != manifest.family:
            raise PenstockError(
                f"the evidence is of {evidence.family}, {ref} is made for {manifest.family}",
                Code.ADAPTER_TAKEN,
            )

    async def _collect_reports(self) -> None:
        adapters, templates = self.view.adapters, self.view.evidence
        if not (adapters.is_whole and templates.is_whole):
            return
        named = frozenset(each.report for each in adapters.evidence.values())
        named |= {each.report for each in templates.told.values()}
        try:
            await asyncio.to_thread(self._reports.keep_only, named)
        except StoreUnavailable as error:  # what was asked for is done
            log.warning("reports of evaluations not collected: %s", error)


def _as_read(adapters: AdapterRegistry, ref: str, write: Write) -> AdapterVersion:
    """A version, as it was when the caller read it. Raises `unknown-adapter`."""
    version = adapters.version(ref)
    write.check(version, f"adapter {ref}")
    return version


def with_registered(
    adapters: AdapterRegistry, version: AdapterVersion
) -> tuple[AdapterRegistry, registry.Registered]:
    """The registry with a version whose bytes are here, and what came of it. Raises
    `adapter-taken`."""
    with _told():
        found = registry.register(adapters.versions, adapters.removed, version)
    return adapters.with_version(found.version) if found.is_new else adapters, found


def _check_whole(adapters: AdapterRegistry) -> None:
    """Raises `adapter-in-use` where an alias may name it that cannot be read."""
    if not adapters.is_whole:
        raise PenstockError(
            "documents of the store on adapters cannot be read by this version of the head, so "
            "nobody knows what they name: `penstock status` tells which",
            Code.ADAPTER_IN_USE,
        )


@contextmanager
def _told() -> Iterator[None]:
    """The rules' refusals in terms of the control plane."""
    try:
        yield
    except registry.Taken as error:
        raise PenstockError(str(error), Code.ADAPTER_TAKEN) from None
    except registry.InUse as error:
        raise PenstockError(str(error), Code.ADAPTER_IN_USE) from None
    except (promotion.NotPromoted, BadMove) as error:
        raise PenstockError(str(error), Code.NOT_PROMOTED) from None
    except BadManifest as error:
        raise InvalidInput(str(error)) from None
