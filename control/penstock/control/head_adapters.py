"""Builds what a head does with adapters: their registry, their bytes, and where they are kept."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from penstock.control.adapter_sources.base_models import MachineModels
from penstock.control.adapter_sources.hugging_face import hub_cache
from penstock.control.adapter_sources.sources import MachineSources
from penstock.control.data_dir import adapters_path, evidence_path
from penstock.control.managers.adapters.library import AdapterLibrary
from penstock.control.managers.adapters.residence import AdapterResidence
from penstock.control.managers.adapters.versions import AdapterManager
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.placement.placement import Placement
from penstock.control.settings import HeadSettings
from penstock.control.store.adapters.content import INCOMING, AdapterContents
from penstock.control.store.adapters.evidence_reports import EvidenceReports
from penstock.control.supervision.clock import Clock


@dataclass(frozen=True, slots=True)
class HeadAdapters:
    """What a head does with adapters."""

    contents: AdapterContents
    manager: AdapterManager
    residence: AdapterResidence
    scratch: Path  # where uploads lie meanwhile


async def head_adapters(
    settings: HeadSettings,
    cluster: ClusterStore,
    placement: Placement,
    clock: Clock,
    stack: AsyncExitStack,
) -> HeadAdapters:
    """All of it, idle. Whoever calls owns the data directory."""
    directory = adapters_path(settings.data_dir)
    contents = AdapterContents(directory)
    await asyncio.to_thread(contents.throw_away_leftovers)
    scratch = directory / INCOMING
    cache = hub_cache()
    sources = MachineSources(scratch, cache)
    stack.callback(sources.give_up)
    library = AdapterLibrary(contents, sources, cluster.view, clock)
    reports = EvidenceReports(evidence_path(settings.data_dir))
    return HeadAdapters(
        contents,
        AdapterManager(cluster, library, MachineModels(cache), reports, clock),
        AdapterResidence(cluster, placement, library, clock),
        scratch,
    )
