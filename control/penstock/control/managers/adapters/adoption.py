"""Registers the adapters that stood in deployments before there was a registry.

Each comes over in one transaction: its version, its alias, and the deployment without the binding.
One whose files this machine cannot read stays a binding, and is tried again when a head starts.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from penstock.adapters.adapter import AdapterRef, BadAdapterRef
from penstock.adapters.alias import Alias, BadAlias, Move, Target
from penstock.adapters.fitness import FamilyLimits
from penstock.adapters.version import AdapterVersion, BadManifest, Manifest, VersionState
from penstock.control.errors import BadAdapter, PenstockError
from penstock.control.managers.adapters.library import AdapterLibrary
from penstock.control.managers.cluster_store import HEAD, ClusterStore
from penstock.control.state.cluster import ClusterView
from penstock.control.state.rollout.deployment import (
    AdapterBinding,
    Deployment,
    DeploymentName,
)
from penstock.control.store.adapters.content import TakenIn
from penstock.control.store.store import Author
from penstock.control.supervision.clock import Clock

log = logging.getLogger(__name__)


class AdapterAdoption:
    """Done once, before routes are told: what clients say has to mean what it meant."""

    def __init__(self, cluster: ClusterStore, library: AdapterLibrary, clock: Clock) -> None:
        self._cluster = cluster
        self._library = library
        self._clock = clock

    async def adopt(self) -> None:
        """Registers what can be registered. Raises nothing: the rest is logged, and stays."""
        view = self._cluster.view()
        if view.held:
            return
        for name, deployment in sorted(view.deployments.items()):
            for binding in deployment.bindings:
                try:
                    await self._adopt(name, binding)
                except (PenstockError, BadAdapterRef, BadAlias, BadManifest) as error:
                    log.error(
                        "adapter %s of %s is not registered, so nobody can ask for %s:%s: %s; "
                        "register it and set the alias",
                        *(binding.adapter, name, name, binding.alias, error),
                    )

    async def _adopt(self, name: DeploymentName, binding: AdapterBinding) -> None:
        author = Author(HEAD, f"register {binding.adapter}, which {name} offers as {binding.alias}")
        if _has_alias(self._cluster.view(), name, binding):
            await self._cluster.apply(lambda view: _without(view, name, binding), author)
            return
        # What was served is not refused by a limit that came later.
        async with self._library.fetched(binding.source, FamilyLimits()) as content:
            await self._cluster.apply(
                lambda view: self._adopted(view, name, binding, content), author
            )

    def _adopted(
        self, view: ClusterView, name: DeploymentName, binding: AdapterBinding, content: TakenIn
    ) -> ClusterView:
        if _has_alias(view, name, binding):
            return _without(view, name, binding)
        deployment, now = view.deployment(name), self._clock.now()
        manifest = Manifest(
            files=content.files,
            family=deployment.spec.template.family,
            rank=content.facts.rank,
            modules=content.facts.modules,
            source=binding.source,
            registered_at=now,
            registered_by=HEAD,
        )
        ref = _free_ref(view, AdapterRef.parse(binding.adapter), manifest)
        version = view.adapters.versions.get(ref) or AdapterVersion(
            ref, manifest, VersionState.LIVE
        )
        alias = Alias(name, binding.alias, (Move(Target.of(ref), now, HEAD),))
        adapters = view.adapters.with_version(version).with_alias(alias)
        widened = _widened(deployment, content.facts.rank)
        return _without(replace(view, adapters=adapters).with_deployment(widened), name, binding)


def _free_ref(view: ClusterView, ref: AdapterRef, manifest: Manifest) -> AdapterRef:
    """The name that it had, unless that was given to something else or is retired."""
    other = AdapterRef(ref.name, f"{ref.version[:40]}-{manifest.digest[:12]}")
    for each in (ref, other):
        standing = view.adapters.versions.get(each)
        if standing is None and each not in view.adapters.removed:
            return each
        if standing is not None and _may_stand_for(standing, manifest):
            return each
    raise BadAdapter(f"{ref} and {other} are taken")


def _may_stand_for(version: AdapterVersion, manifest: Manifest) -> bool:
    theirs = version.manifest
    same = (theirs.digest, theirs.family) == (manifest.digest, manifest.family)
    return same and version.state is not VersionState.RETIRED


def _has_alias(view: ClusterView, name: DeploymentName, binding: AdapterBinding) -> bool:
    return f"{name}:{binding.alias}" in view.adapters.aliases


def _widened(deployment: Deployment, rank: int) -> Deployment:
    """Taking the rank; its template keeps its digest, so that no replica is replaced for it."""
    template = deployment.spec.template
    if rank <= template.adapter_rank:
        return deployment
    spec = replace(deployment.spec, template=replace(template, max_adapter_rank=rank))
    return replace(deployment, spec=spec)


def _without(view: ClusterView, name: DeploymentName, binding: AdapterBinding) -> ClusterView:
    deployment = view.deployment(name)
    left = tuple(each for each in deployment.bindings if each != binding)
    return view.with_deployment(replace(deployment, bindings=left))
