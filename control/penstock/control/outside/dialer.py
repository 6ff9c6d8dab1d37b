"""How this process calls other parts of its cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import grpc
import grpc.aio

from penstock.control.cluster_security import OPEN, SCHEME, ClusterSecurity
from penstock.control.replica_tokens import callers_token
from penstock.control.state.fleet.replica import ReplicaAddress

Options = Sequence[tuple[str, Any]]
Metadata = tuple[tuple[str, str], ...]
# A proxy is for the world outside; in a cluster it would be in the way, and read along.
_ALWAYS: Options = (("grpc.enable_http_proxy", 0),)


class Dialer:
    """Makes channels, and the metadata that calls on them are to carry: `metadata` to heads and
    agents, `shown_to` to replicas."""

    def __init__(self, security: ClusterSecurity = OPEN) -> None:
        self._token = security.token
        self.metadata = _metadata(security.authorization)
        self._credentials = (
            grpc.ssl_channel_credentials(root_certificates=security.authorities)
            if security.authorities
            else None
        )

    def channel(self, address: str, options: Options = ()) -> grpc.aio.Channel:
        """To a head or a node agent: with TLS where this process was given a CA."""
        if self._credentials is None:
            return self.plain_channel(address, options)
        return grpc.aio.secure_channel(address, self._credentials, options=[*_ALWAYS, *options])

    def shown_to(self, replica: ReplicaAddress) -> Metadata:
        """What a call to this replica carries: a token that opens it alone, or the cluster's where
        an older agent has started it with that one."""
        if not replica.own_token:
            return self.metadata
        token = callers_token(self._token, replica.id)
        return _metadata(f"{SCHEME}{token}" if token else "")

    def plain_channel(self, address: str, options: Options = ()) -> grpc.aio.Channel:
        """To a replica: these serve without TLS."""
        return grpc.aio.insecure_channel(address, options=[*_ALWAYS, *options])


def _metadata(authorization: str) -> Metadata:
    return (("authorization", authorization),) if authorization else ()
