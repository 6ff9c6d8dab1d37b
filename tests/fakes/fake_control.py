"""A head that serves nothing but Routes, over real gRPC: the test writes the snapshots."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path

import grpc

from penstock.v1 import canary_pb2 as canary_messages
from penstock.v1 import common_pb2 as common
from penstock.v1 import explain_pb2 as explain
from penstock.v1 import inference_pb2 as inference
from penstock.v1 import routes_pb2 as v1
from penstock.v1 import routes_pb2_grpc as services
from penstock.v1 import slo_pb2, suspects_pb2
from tests.fakes.fake_replica import FakeReplica, authorization_of
from tests.fakes.fake_server import FakeServer

TLS = Path(__file__).parent / "tls"
FAMILY = "mini-family"


def deployment(
    name: str = "mini",
    *,
    adapters: Mapping[str, str | Mapping[str, int]] | None = None,
    base_family: str = FAMILY,
    limits: v1.Limits | None = None,
    selection_policy: str = "",
    availability: v1.Availability = v1.AVAILABILITY_UNSPECIFIED,
    canary: Mapping[str, int] | None = None,
    ladders: Mapping[str, Iterable[str]] | None = None,
    managed: bool = False,
    prices: v1.Prices | None = None,
    slo: slo_pb2.Slo | None = None,
) -> v1.DeploymentRoute:
    """A deployment as clients may name it: aliases to versions or to weights of versions, canaries
    to thousandths, reasons to rungs ("": for any)."""
    return v1.DeploymentRoute(
        name=name,
        model=f"weights/{name}",
        created=1_700_000_000,
        max_model_len=2048,
        base_family=base_family,
        aliases=[_alias(alias, target) for alias, target in (adapters or {}).items()],
        limits=limits,
        selection_policy=selection_policy,
        availability=availability,
        canary=[v1.CanaryWeight(deployment=d, permille=p) for d, p in (canary or {}).items()],
        ladders=[v1.Ladder(reason=r, rungs=rungs) for r, rungs in (ladders or {}).items()],
        managed=managed,
        prices=prices,
        slo=slo,
    )


def _alias(alias: str, target: str | Mapping[str, int]) -> v1.AdapterAlias:
    if isinstance(target, str):
        return v1.AdapterAlias(alias=alias, adapter=target)
    shares = [v1.AdapterShare(adapter=a, weight=w) for a, w in sorted(target.items())]
    return v1.AdapterAlias(alias=alias, adapter=shares[0].adapter, shares=shares)


def digest_of(adapter: str) -> str:
    """Of the content that this head says a version has."""
    return hashlib.sha256(adapter.encode()).hexdigest()


def version(adapter: str, *, base_family: str = FAMILY) -> v1.AdapterVersion:
    """A version that every deployment of its family may be asked for."""
    return v1.AdapterVersion(
        name=adapter,
        digest=digest_of(adapter),
        base_family=base_family,
        created=1_700_000_001,
    )


def _versions_named_by(deployments: Iterable[v1.DeploymentRoute]) -> list[v1.AdapterVersion]:
    families: dict[str, str] = {}
    for each in deployments:
        for alias in each.aliases:
            for name in (alias.adapter, *(share.adapter for share in alias.shares)):
                families.setdefault(name, each.base_family)
    return [version(name, base_family=family) for name, family in families.items()]


def tenant(
    name: str = "acme",
    *,
    keys: Iterable[str] = (),
    expires_at_ms: int = 0,
    models: Iterable[str] = (),
    adapters: Iterable[str] = (),
    limits: Mapping[str, int] | None = None,
    priority: v1.PriorityClass = v1.PRIORITY_CLASS_UNSPECIFIED,
    cache_salt: str = "",
    degrade_never: bool = False,
    fallbacks_listed: bool = False,
    shadow_never: bool = False,
) -> v1.Tenant:
    """A tenant whose keys have the ids "k1", "k2" and so on; `limits` are fields of the message."""
    told = v1.Tenant(
        id=name,
        keys=[
            v1.ApiKey(
                id=f"k{i + 1}",
                sha256=hashlib.sha256(key.encode("latin-1")).digest(),
                expires_at_ms=expires_at_ms,
            )
            for i, key in enumerate(keys)
        ],
        models=models,
        adapters=adapters,
        priority=priority,
        cache_salt=cache_salt,
        degrade_never=degrade_never,
        fallbacks_listed=fallbacks_listed,
        shadow_never=shadow_never,
    )
    for field, value in (limits or {}).items():
        setattr(told, field, value)
    return told


def route(
    replica: FakeReplica,
    *,
    of: str = "mini",
    state: inference.ReplicaState = inference.REPLICA_STATE_READY,
    node: str = "n1",
    zone: str = "",
    adapters: Iterable[str] = (),
) -> v1.ReplicaRoute:
    """A replica as the head announces it. `adapters`: those that it holds."""
    return v1.ReplicaRoute(
        id=replica.replica_id,
        deployment=of,
        address=replica.address,
        node=node,
        zone=zone,
        capacity=replica.load.max_running,
        state=state,
        adapters=adapters,
    )


def _server_credentials() -> grpc.ServerCredentials:
    """With the certificate beside this file."""
    pair = ((TLS / "server.key").read_bytes(), (TLS / "server.pem").read_bytes())
    return grpc.ssl_server_credentials([pair])


class Explaining:
    """Asks the gateway that has the stream open; one at a time."""

    def __init__(self) -> None:
        self.hellos: list[explain.ExplainReply] = []
        self.is_open = False
        self._questions: asyncio.Queue[explain.ExplainQuestion] = asyncio.Queue()
        self._asked = 0
        self._answers: dict[int, asyncio.Queue[explain.ExplainReply | None]] = {}

    async def ask(self, question: explain.ExplainQuestion) -> list[explain.RequestRecord]:
        """What it answers, once it has said all. Raises `ConnectionError`: it is gone."""
        self._asked += 1
        question.number = self._asked
        answers = self._answers[self._asked] = asyncio.Queue()
        self._questions.put_nowait(question)
        records: list[explain.RequestRecord] = []
        while reply := await answers.get():
            records.extend(reply.records)
            if reply.last:
                return records
        raise ConnectionError("the gateway's stream is over")

    async def serve(
        self,
        replies: AsyncIterator[explain.ExplainReply],
        context: grpc.aio.ServicerContext[explain.ExplainReply, explain.ExplainQuestion],
    ) -> None:
        """The stream, until it ends."""
        self.hellos.append(await anext(replies))
        self.is_open = True
        try:
            async with asyncio.TaskGroup() as group:
                asking = group.create_task(self._write(context))
                async for reply in replies:
                    self._answers[reply.question].put_nowait(reply)
                asking.cancel()
        finally:
            self.is_open = False
            self._questions = asyncio.Queue()
            for answers in self._answers.values():
                answers.put_nowait(None)

    async def _write(
        self, context: grpc.aio.ServicerContext[explain.ExplainReply, explain.ExplainQuestion]
    ) -> None:
        while True:
            await context.write(await self._questions.get())


class FakeControl(FakeServer, services.RoutesServicer):
    """Serves from `async with` on. publish() reaches whoever watches, now and later."""

    def __init__(self, *, tls: bool = False) -> None:
        super().__init__(_server_credentials() if tls else None)
        self.watches: list[v1.WatchRoutesRequest] = []
        self.reports: list[v1.GatewayReport] = []
        self.reply: v1.GatewayReportReply | None = None  # to each report; None: an older head
        self.authorizations: list[str] = []  # of each call
        self.explaining = Explaining()
        self._snapshot: v1.RouteSnapshot | None = None
        self._version = 0
        self._changed = asyncio.Condition()

    def _serve_on(self, server: grpc.aio.Server) -> None:
        services.add_RoutesServicer_to_server(self, server)  # type: ignore[no-untyped-call]

    async def publish(
        self,
        deployments: Iterable[v1.DeploymentRoute],
        replicas: Iterable[v1.ReplicaRoute],
        *,
        suspects: Iterable[suspects_pb2.Suspect] = (),
        stamp: common.ClusterStamp | None = None,
        tenants: Iterable[v1.Tenant] = (),
        keys_required: bool = False,
        ended_keys: Iterable[str] = (),
        versions: Iterable[v1.AdapterVersion] | None = None,
        shadows: Iterable[v1.ShadowRule] = (),
        comparer_address: str = "",
        canaries: Iterable[canary_messages.CanaryRule] = (),
    ) -> int:
        """A new snapshot; returns its version. Without `versions`: those that aliases name."""
        deployments = list(deployments)
        if versions is None:
            versions = _versions_named_by(deployments)
        async with self._changed:
            self._version += 1
            self._snapshot = v1.RouteSnapshot(
                version=self._version,
                deployments=deployments,
                replicas=replicas,
                suspects=suspects,
                stamp=stamp,
                tenants=tenants,
                keys_required=keys_required,
                ended_keys=ended_keys,
                adapters=versions,
                shadows=shadows,
                comparer_address=comparer_address,
                canaries=canaries,
            )
            self._changed.notify_all()
        return self._version

    async def Watch(
        self,
        request: v1.WatchRoutesRequest,
        context: grpc.aio.ServicerContext[v1.WatchRoutesRequest, v1.RouteSnapshot],
    ) -> None:
        """The snapshot in force, then each new one."""
        self.watches.append(request)
        self.authorizations.append(authorization_of(context))
        sent = 0
        while True:
            snapshot = await self._newer_than(sent)
            sent = snapshot.version
            await context.write(snapshot)

    async def Explain(
        self,
        request_iterator: AsyncIterator[explain.ExplainReply],
        context: grpc.aio.ServicerContext[explain.ExplainReply, explain.ExplainQuestion],
    ) -> None:
        """Asks the gateway what tests want to know."""
        self.authorizations.append(authorization_of(context))
        await self.explaining.serve(request_iterator, context)

    async def _newer_than(self, version: int) -> v1.RouteSnapshot:
        async with self._changed:
            await self._changed.wait_for(lambda: self._version > version)
            assert self._snapshot is not None
            return self._snapshot

    async def Report(
        self,
        request_iterator: AsyncIterator[v1.GatewayReport],
        context: grpc.aio.ServicerContext[v1.GatewayReport, v1.GatewayReportReply],
    ) -> AsyncIterator[v1.GatewayReportReply]:
        """Keeps what gateways tell, and answers with what the test says."""
        self.authorizations.append(authorization_of(context))
        async for report in request_iterator:
            self.reports.append(report)
            if self.reply is not None:
                yield self.reply
