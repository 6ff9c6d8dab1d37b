"""The comparer's gRPC server: a port for gateways, and one on the loopback for the head."""

from __future__ import annotations

from typing import Final, NamedTuple

import grpc

from penstock.control.cluster_security import ClusterSecurity
from penstock.control.rpc.comparer_service import ComparerService, Comparing
from penstock.control.rpc.ports import open_port
from penstock.control.rpc.server import OPTIONS
from penstock.control.rpc.shadow_service import ShadowService
from penstock.control.rpc.token_check import token_checks
from penstock.v1 import comparer_pb2_grpc, shadow_pb2_grpc

_LOOPBACK: Final = "127.0.0.1"
_ADVICE: Final = "it is in use or not of this machine; pass another --comparer-port"


class Ports(NamedTuple):
    """Where it listens."""

    gateways: str  # a port of the host that it was told, with TLS where the cluster has that
    head: str  # host:port, without


async def serve_comparer(
    listen: str, comparing: Comparing, security: ClusterSecurity
) -> tuple[grpc.aio.Server, Ports]:
    """Starts to serve. Raises AddressTaken."""
    server = grpc.aio.server(options=OPTIONS, interceptors=token_checks(security.authorization))
    shadow_pb2_grpc.add_ShadowServicer_to_server(  # type: ignore[no-untyped-call]
        ShadowService(comparing.count), server
    )
    comparer_pb2_grpc.add_ComparerServicer_to_server(  # type: ignore[no-untyped-call]
        ComparerService(comparing), server
    )
    port = open_port(server, listen, security.server, advice=_ADVICE)
    own = open_port(server, f"{_LOOPBACK}:0", None, advice=_ADVICE)
    await server.start()
    return server, Ports(str(port), f"{_LOOPBACK}:{own}")
