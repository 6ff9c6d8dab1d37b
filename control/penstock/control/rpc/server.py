"""The head's gRPC server."""

from __future__ import annotations

import grpc

from penstock.control.errors import AddressTaken
from penstock.control.rpc.nodes_service import NodesService
from penstock.control.rpc.routes_service import RoutesService
from penstock.v1 import nodes_pb2_grpc, routes_pb2_grpc

# A port has one owner: without this a second head would share it silently.
_OPTIONS = [
    ("grpc.so_reuseport", 0),
    ("grpc.max_receive_message_length", 64 << 20),
    # Gateways ping each 10 s, also while no route changes; by default that counts as an attack.
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 5_000),
]


async def serve_rpc(
    listen: str, routes: RoutesService, nodes: NodesService
) -> tuple[grpc.aio.Server, int]:
    """Starts to serve; returns the server and its port. Raises AddressTaken."""
    server = grpc.aio.server(options=_OPTIONS)
    routes_pb2_grpc.add_RoutesServicer_to_server(routes, server)  # type: ignore[no-untyped-call]
    nodes_pb2_grpc.add_NodesServicer_to_server(nodes, server)  # type: ignore[no-untyped-call]
    try:
        port = server.add_insecure_port(listen)
    except RuntimeError as error:
        raise AddressTaken(
            f"cannot listen on {listen} for gateways and nodes: it is in use or not of this "
            "machine; stop what listens there, or pass another --rpc"
        ) from error
    await server.start()
    return server, port
