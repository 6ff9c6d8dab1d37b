"""The admin app over a store that forgets, without a socket; what the tests of this room share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
from fastapi import FastAPI

from penstock.control.adapter_sources.base_models import MachineModels
from penstock.control.adapter_sources.sources import MachineSources
from penstock.control.admin.app import admin_app
from penstock.control.admin.services import AdminServices
from penstock.control.errors import Code, NotFound, PenstockError, Unavailable
from penstock.control.machine_logs.values import LoggedPart, LogQuestion
from penstock.control.managers.adapters.library import AdapterLibrary
from penstock.control.managers.adapters.versions import AdapterManager
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.events import EventManager
from penstock.control.managers.fleet.fleet_logs import LogSources
from penstock.control.managers.fleet.replica_logs import LogPart, LogRequest
from penstock.control.managers.observe.explain import ExplainManager
from penstock.control.managers.rollout.engines import EngineManager
from penstock.control.managers.routing.routes import RouteManager
from penstock.control.managers.routing.traffic import Traffic
from penstock.control.managers.tenancy.spend import SpendManager
from penstock.control.managers.tenancy.tokens import TokenManager
from penstock.control.managers.write import Write
from penstock.control.outside.clock import SystemClock
from penstock.control.placement.placement import ReplicaOrder
from penstock.control.settings import EngineLimits
from penstock.control.state.fleet.memory import MemoryFit
from penstock.control.state.fleet.replica import NodeFacts, ReplicaAddress
from penstock.control.state.recording.recorded import RecordingStanding
from penstock.control.state.rollout.trial import Outcome, Question
from penstock.control.state.shadow.comparing import Account, Standing
from penstock.control.state.tenancy.prices import Prices
from penstock.control.state.tenancy.tokens import Role
from penstock.control.store.adapters.content import INCOMING, AdapterContents
from penstock.control.store.adapters.evidence_reports import EvidenceReports
from tests.fakes.control_clock import ManualClock
from tests.fakes.control_store import MemoryStore
from tests.fakes.event_counts import EventCounts
from tests.fakes.explaining_gateway import ExplainingGateway
from tests.fakes.logging_machine import LoggingMachine

SECRET = "pst_secret"


@dataclass(frozen=True, slots=True)
class Admin:
    """The app, a client that has a token of role admin, and what stands behind them."""

    app: FastAPI
    client: httpx.AsyncClient
    cluster: ClusterStore
    store: MemoryStore
    tokens: TokenManager
    clock: ManualClock
    traffic: Traffic
    contents: AdapterContents
    services: AdminServices
    library: AdapterLibrary
    replicas: FakeReplicas
    comparisons: FakeComparisons
    recorded: FakeRecorded
    events: EventManager
    logs: FakeLogs
    fits: FakeFits
    gateway: ExplainingGateway  # can be asked about requests

    async def headers(self, role: Role) -> dict[str, str]:
        """Those of a caller with a new token of this role, whose name is the role's."""
        _, secret = await self.tokens.create(f"some-{role}", role, Write("test"))
        return bearer(secret)


class FakeReplicas:
    """A `ReplicaCaller` that answers as it was told, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Question, str]] = []
        self.answer: Outcome | PenstockError = Outcome(b"")

    async def ask(
        self,
        replica: ReplicaAddress,
        question: Question,
        *,
        model: str,
        request_id: str,
        within: timedelta,
        prices: Prices,
    ) -> Outcome:
        self.asked.append((replica.address, question, model))
        if isinstance(self.answer, PenstockError):
            raise self.answer
        return self.answer


class FakeComparisons:
    """`Comparisons` that say of each shadow what they were told; nothing so far."""

    def __init__(self) -> None:
        self.verdict, self.pairs = "undecided", 0
        self.told: Account | None = None
        self.pairs_a_day = -1.0  # that it was asked about last
        self.with_texts = False  # likewise

    def standing(self, uid: str) -> Standing:
        return Standing(uid, self.verdict, self.pairs, 0)

    async def account(self, uid: str, pairs_a_day: float, *, with_texts: bool) -> Account:
        self.pairs_a_day, self.with_texts = pairs_a_day, with_texts
        if self.told is None:
            raise Unavailable("the comparer starts: ask again in some seconds")
        return self.told


class FakeRecorded:
    """`Recorded` that says of each recording what it was told; nothing so far."""

    def __init__(self) -> None:
        self.requests = 0
        self.parts: list[bytes] | None = None

    def recorded(self, uid: str) -> RecordingStanding:
        return RecordingStanding(uid, self.requests, 0, self.requests, 0, {})

    async def recording(self, uid: str) -> AsyncIterator[bytes]:
        if self.parts is None:
            raise Unavailable("the comparer starts: ask again in some seconds")
        for part in self.parts:
            yield part


class FakeLogs:
    """`AgentLogs` that keep what they were told to, by agent and replica, and by agent alone; and
    the head's own."""

    def __init__(self) -> None:
        self.own = LoggingMachine()
        self.machines: dict[str, LoggingMachine] = {}
        self.kept: dict[tuple[str, str], list[LogPart | PenstockError]] = {}
        self.asked: list[tuple[str, str, LogRequest]] = []
        self.reading = 0

    async def read(
        self, address: str, replica_id: str, asked: LogRequest
    ) -> AsyncGenerator[LogPart, None]:
        self.asked.append((address, replica_id, asked))
        self.reading += 1
        try:
            nothing = NotFound(f"no log of {replica_id} here", Code.UNKNOWN_REPLICA)
            for part in self.kept.get((address, replica_id), [nothing]):
                if isinstance(part, PenstockError):
                    raise part
                yield part
            if asked.follow:
                await asyncio.Event().wait()
        finally:
            self.reading -= 1

    def read_all(self, address: str, asked: LogQuestion) -> AsyncGenerator[LoggedPart, None]:
        return self.machines[address].read(asked)


class FakeFits:
    """Says the same of whatever it is asked for; `error`: nobody answers."""

    def __init__(self) -> None:
        self.asked: list[ReplicaOrder] = []
        self.told = MemoryFit(reason="nobody has looked")
        self.error: PenstockError | None = None

    async def fit(self, node: NodeFacts, order: ReplicaOrder) -> MemoryFit:
        self.asked.append(order)
        if self.error:
            raise self.error
        return replace(self.told, node=node.id)


def bearer(secret: str) -> dict[str, str]:
    """The headers that show this token."""
    return {"authorization": f"Bearer {secret}"}


def client_of(app: FastAPI, secret: str = SECRET) -> httpx.AsyncClient:
    """A client on this machine; without a secret it has no token."""
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    headers = bearer(secret) if secret else {}
    return httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers)


@asynccontextmanager
async def running_admin(*, hosts: tuple[str, ...] = ()) -> AsyncIterator[Admin]:
    """An app that has just been made."""
    clock, store = ManualClock(), MemoryStore()
    cluster = ClusterStore(store, clock)
    tokens = TokenManager(cluster, clock)
    await tokens.begin(SECRET, new=True)
    with TemporaryDirectory() as directory:
        contents = AdapterContents(Path(directory, "adapters"))
        scratch = Path(directory, "adapters", INCOMING)
        hub = Path(directory, "hub")
        library = AdapterLibrary(contents, MachineSources(scratch, hub), cluster.view, clock)
        library.open()
        reports = EvidenceReports(Path(directory, "evidence"))
        adapters = AdapterManager(cluster, library, MachineModels(hub), reports, clock)
        services = AdminServices(
            cluster,
            adapters,
            scratch,
            routes := RouteManager(cluster, clock),
            tokens,
            clock,
            store,
            SpendManager(cluster, store, clock),
            replicas := FakeReplicas(),
            comparisons := FakeComparisons(),
            recorded := FakeRecorded(),
            LogSources(logs := FakeLogs(), logs.own),
            events := EventManager(cluster, store, clock, EventCounts()),
            EngineManager(cluster, routes, clock, EngineLimits(per_token=3, total=5)),
            fits := FakeFits(),
            explain := ExplainManager(cluster, SystemClock()),
            "http://127.0.0.1:8080/v1",
            traffic=(traffic := Traffic()),
        )
        app = admin_app(services, "1.2.3", hosts=hosts)
        async with client_of(app) as client, asyncio.TaskGroup() as tasks:
            life = tasks.create_task((gateway := ExplainingGateway()).beside(explain))
            made = (app, client, cluster, store, tokens, clock, traffic, contents, services)
            told = (replicas, comparisons, recorded, events, logs, fits, gateway)
            yield Admin(*made, library, *told)
            life.cancel()


def assert_problem(reply: httpx.Response, status: int, *words: str) -> None:
    """The reply is a problem body of this status that says all the words."""
    assert reply.status_code == status, reply.text
    assert reply.headers["content-type"] == "application/problem+json"
    body = reply.json()
    assert set(body) == {"type", "title", "status", "detail"}
    assert body["status"] == status
    for word in words:
        assert word in body["detail"]
