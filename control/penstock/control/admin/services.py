"""What the admin API works with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from penstock.control.admin.fleet.gateways_api import GatewayReplacer
from penstock.control.admin.recording.api import Recorded
from penstock.control.admin.shadow.api import Comparisons
from penstock.control.managers.adapters.versions import AdapterManager
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.events import EventManager
from penstock.control.managers.fleet.fleet_logs import LogSources
from penstock.control.managers.observe.explain import ExplainManager
from penstock.control.managers.rollout.engines import EngineManager
from penstock.control.managers.rollout.fits import AsksNodes
from penstock.control.managers.rollout.trials import ReplicaCaller
from penstock.control.managers.routing.routes import RouteManager
from penstock.control.managers.routing.traffic import Traffic
from penstock.control.managers.tenancy.spend import SpendManager
from penstock.control.managers.tenancy.tokens import TokenManager
from penstock.control.state.problems import Problem
from penstock.control.store.store import Store
from penstock.control.supervision.clock import Clock


@dataclass(frozen=True, slots=True)
class AdminServices:
    """The managers that its resources call."""

    cluster: ClusterStore
    adapters: AdapterManager
    adapter_scratch: Path  # where uploads lie meanwhile
    routes: RouteManager
    tokens: TokenManager
    clock: Clock
    store: Store  # read for the audit trail, usage and events alone
    spend: SpendManager
    replicas: ReplicaCaller
    comparisons: Comparisons
    recorded: Recorded
    logs: LogSources
    events: EventManager
    engines: EngineManager
    nodes: AsksNodes
    explain: ExplainManager
    base_url: str | None = None  # where clients reach a gateway; None: nobody knows
    gateways: GatewayReplacer | None = None  # None: the head runs no gateway
    traffic: Traffic = field(default_factory=Traffic)
    problems: Callable[[], Sequence[Problem]] = tuple
    head_metrics: str = ""  # host:port of this head's own; empty: none
