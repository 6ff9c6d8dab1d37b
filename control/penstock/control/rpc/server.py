"""The head's gRPC server."""

from __future__ import annotations

import grpc

from penstock.control.cluster_security import OPEN, ClusterSecurity
from penstock.control.rpc.nodes_service import NodesService
from penstock.control.rpc.ports import open_port
from penstock.control.rpc.routes_service import RoutesService
from penstock.control.rpc.token_check import token_checks
from penstock.v1 import nodes_pb2_grpc, routes_pb2_grpc

# A port has one owner: without this a second head would share it silently.
OPTIONS = [
    ("grpc.so_reuseport", 0),
    ("grpc.max_receive_message_length", 64 << 20),
    # Gateways ping each 10 s, also while no route changes; by default that counts as an attack.
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
]


async def serve_rpc(
    listen: str, routes: RoutesService, nodes: NodesService, security: ClusterSecurity = OPEN
) -> tuple[grpc.aio.Server, int]:
    """Starts to serve; returns the server and its port. Raises AddressTaken."""
    server = grpc.aio.server(options=OPTIONS, interceptors=token_checks(security.authorization))
    routes_pb2_grpc.add_RoutesServicer_to_server(routes, server)  # type: ignore[no-untyped-call]
    nodes_pb2_grpc.add_NodesServicer_to_server(nodes, server)  # type: ignore[no-untyped-call]
    advice = "it is in use or not of this machine; stop what listens there, or pass another --rpc"
    port = open_port(server, listen, security.server, advice=advice)
    await server.start()
    return server, port
