"""Ports of gRPC servers, with TLS where there is a certificate."""

from __future__ import annotations

import grpc
import grpc.aio

from penstock.control.cluster_security import KeyPair
from penstock.control.errors import AddressTaken


def open_port(server: grpc.aio.Server, address: str, pair: KeyPair | None, *, advice: str) -> int:
    """Lets the server listen at "host:port"; returns the port, a free one filled in.

    Raises `AddressTaken`, whose message ends with the advice.
    """
    try:
        if pair is None:
            return server.add_insecure_port(address)
        credentials = grpc.ssl_server_credentials([(pair.key, pair.chain)])
        return server.add_secure_port(address, credentials)
    except RuntimeError as error:
        raise AddressTaken(f"cannot listen on {address}: {advice}") from error
