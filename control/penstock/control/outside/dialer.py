"""How this process calls other parts of its cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import grpc
import grpc.aio

from penstock.control.cluster_security import OPEN, ClusterSecurity

Options = Sequence[tuple[str, Any]]
# A proxy is for the world outside; in a cluster it would be in the way, and read along.
_ALWAYS: Options = (("grpc.enable_http_proxy", 0),)


class Dialer:
    """Makes channels, and the metadata that every call on them is to carry."""

    def __init__(self, security: ClusterSecurity = OPEN) -> None:
        word = security.authorization
        self.metadata: tuple[tuple[str, str], ...] = (("authorization", word),) if word else ()
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

    def plain_channel(self, address: str, options: Options = ()) -> grpc.aio.Channel:
        """To a replica: these serve without TLS."""
        return grpc.aio.insecure_channel(address, options=[*_ALWAYS, *options])
