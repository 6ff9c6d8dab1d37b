"""Builds the head's admin API: its tokens, and the names that it answers to."""

from __future__ import annotations

import logging
import socket
from importlib import metadata

from penstock.control.admin.app import admin_app
from penstock.control.admin.hosts import bracketed
from penstock.control.admin.server import AdminServer
from penstock.control.admin.services import AdminServices
from penstock.control.data_dir import admin_token_path
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.tenancy.tokens import TokenManager, new_secret
from penstock.control.secrets_files import made_or_read
from penstock.control.settings import LOOPBACK, HeadSettings, split_address
from penstock.control.supervision.clock import Clock

log = logging.getLogger(__name__)


def admin_server(
    settings: HeadSettings, listener: socket.socket, services: AdminServices
) -> AdminServer:
    """The server, idle."""
    _warn_of_plain_tokens(settings)
    app = admin_app(services, metadata.version("penstock"), hosts=_hosts(settings))
    return AdminServer(app, listener, settings.tls)


async def admin_tokens(settings: HeadSettings, cluster: ClusterStore, clock: Clock) -> TokenManager:
    """All that are stored. The first start writes one of role admin; who reads the data directory
    may use it. Raises `SecretUnusable`."""
    file = admin_token_path(settings.data_dir)
    new = not file.exists()
    tokens = TokenManager(cluster, clock)
    await tokens.begin(made_or_read(file, new_secret), new=new)
    return tokens


def _hosts(settings: HeadSettings) -> tuple[str, ...]:
    """Names that the API answers to: those it was told, and the one it was told to be at."""
    host, _ = split_address(settings.admin, flag="--admin")
    return (host, *settings.allow_hosts)


def _warn_of_plain_tokens(settings: HeadSettings) -> None:
    host, _ = split_address(settings.admin, flag="--admin")
    if bracketed(host.strip("[]")) not in LOOPBACK and settings.tls.cert is None:
        log.warning(
            "the admin API is reached from elsewhere without TLS, so its tokens can be read on "
            "the way: give --tls-cert and --tls-key, or put it behind a proxy that has them",
            extra={"admin": settings.admin},
        )
