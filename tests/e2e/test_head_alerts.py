"""Faults of the head itself, told by a real Prometheus: its store, its certificate, one that knows
more, its end. No gateway and no replica runs beside it."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc
import httpx
import psutil
import pytest

from penstock.v1 import routes_pb2, routes_pb2_grpc
from tests.e2e.prometheus import AS_SHIPPED, EACH_SECOND, Prometheus, watching
from tests.e2e.system import PENSTOCK, eventually
from tests.fakes.ports import free_ports
from tests.fakes.tls.made import write_pair

pytestmark = pytest.mark.timeout(900)

FAULTS = (
    "PenstockCertificateEnding",
    "PenstockStoreFailing",
    "PenstockHoldingStill",
    "PenstockHeadGone",
)
SOON, LATE = timedelta(days=10), timedelta(days=100)
DEPLOYMENT = {"name": "mini", "engine": "simulated", "model": "penstock-mini", "replicas": 0}


class LoneHead:
    """A head that serves with a certificate which the test makes."""

    def __init__(self, folder: Path) -> None:
        self.data, self.cert, self.key = folder / "data", folder / "h.pem", folder / "h.key"
        self._log = folder / "head.log"
        ports = free_ports(3)
        self.admin, self.rpc, self.metrics = (f"127.0.0.1:{port}" for port in ports)

    def start(self, lasts: timedelta, *more: str) -> None:
        """Returns once it answers."""
        write_pair(self.cert, self.key, lasts)
        command = [
            str(PENSTOCK), "head", "--no-gateway", "--data-dir", str(self.data),
            "--admin", self.admin, "--rpc", self.rpc, "--head-metrics", self.metrics,
            "--tls-cert", str(self.cert), "--tls-key", str(self.key), "--tls-ca", str(self.cert),
            *more,
        ]  # fmt: skip
        with self._log.open("ab") as log:
            self.process = psutil.Popen(command, stdout=log, stderr=log)
        eventually(self._lives, within=30, what="the head answers")

    def end(self) -> None:
        """kill -9."""
        self.process.kill()
        self.process.wait(timeout=20)

    def post(self, path: str, body: Any) -> int:
        """The status of a change."""
        token = (self.data / "admin.token").read_text().strip()
        with httpx.Client(verify=self._trust(), trust_env=False) as client:
            headers = {"authorization": f"Bearer {token}"}
            return client.post(
                f"https://{self.admin}/admin/v1/{path}", json=body, headers=headers
            ).status_code

    def hear_of_more(self) -> None:
        """A gateway that the head knows goes by routes of a later state than its store has."""
        token = (self.data / "cluster.token").read_text().strip()
        who = (("authorization", f"Bearer {token}"),)
        trusted = grpc.ssl_channel_credentials(self.cert.read_bytes())
        with grpc.secure_channel(self.rpc, trusted) as channel:
            routes = routes_pb2_grpc.RoutesStub(channel)  # type: ignore[no-untyped-call]
            report = routes_pb2.GatewayReport(gateway_id="gw-9")
            list(routes.Report(iter([report]), metadata=who, timeout=20))
            asked = routes_pb2.WatchRoutesRequest(gateway_id="gw-9")
            told = next(routes.Watch(asked, metadata=who, timeout=20))
            asked.stamp.CopyFrom(told.stamp)
            asked.stamp.revision += 9
            with suppress(grpc.RpcError):  # it is told nothing while the head holds still
                next(routes.Watch(asked, metadata=who, timeout=3))

    def _lives(self) -> bool:
        assert self.process.poll() is None, self._log.read_text()
        with httpx.Client(verify=self._trust()) as client, suppress(httpx.TransportError):
            return client.get(f"https://{self.admin}/livez").status_code == 200
        return False

    def _trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.cert))


@pytest.fixture
def head(folder: Path) -> Iterator[LoneHead]:
    head = LoneHead(folder)
    head.start(SOON)
    yield head
    head.end()


def told(head: LoneHead, folder: Path, every: str) -> AbstractContextManager[Prometheus]:
    """What is told of the head by a Prometheus that trusts its certificate."""
    more = ("--tls-ca", str(head.cert))
    return watching(folder, f"https://{head.admin}", head.data, *more, every=every)


def has_each_fault(head: LoneHead, scraping: Prometheus) -> None:
    """One after the other; in the end it has none."""
    certificate, store, still, gone = FAULTS
    scraping.fires(certificate)
    _, most = head.process.rlimit(psutil.RLIMIT_FSIZE)
    head.process.rlimit(psutil.RLIMIT_FSIZE, (0, most))  # as a disk that takes nothing more
    assert head.post("deployments", DEPLOYMENT) == 503
    scraping.fires(store)
    head.process.rlimit(psutil.RLIMIT_FSIZE, (most, most))
    assert head.post("deployments", DEPLOYMENT) == 201
    head.hear_of_more()
    scraping.fires(still)
    head.end()
    scraping.fires(gone)
    head.start(LATE, "--take-over")


def test_each_fault_of_the_head_is_told(head: LoneHead, folder: Path) -> None:
    with told(head, folder, EACH_SECOND) as scraping:
        has_each_fault(head, scraping)
        certificate, _, still, gone = FAULTS
        scraping.ends(certificate, still, gone)


@pytest.mark.long
def test_each_fault_of_the_head_is_told_in_time_as_shipped_and_ends(
    head: LoneHead, folder: Path
) -> None:
    with told(head, folder, AS_SHIPPED) as scraping:
        has_each_fault(head, scraping)
        scraping.ends(*FAULTS)
