"""What lies between a client and the gateway: TCP alone, or TLS over it."""

from __future__ import annotations

import shutil
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

TLS_FILES = Path(__file__).resolve().parents[2] / "fakes" / "tls"


@dataclass(frozen=True, slots=True)
class Wire:
    """How bytes travel. `context`: None without TLS."""

    context: ssl.SSLContext | None = None

    def flags(self, folder: Path) -> tuple[str, ...]:
        """What makes a gateway speak so; its certificate and key lie in the folder from then on."""
        if self.context is None:
            return ()
        cert, key = folder / "server.pem", folder / "server.key"
        put_pair(TLS_FILES, folder)
        return ("--tls-cert", str(cert), "--tls-key", str(key))

    def wrap(self, link: socket.socket) -> socket.socket:
        """The connection as a client uses it; an end that may be a cut is an error there."""
        if self.context is None:
            return link
        return self.context.wrap_socket(
            link, server_hostname="127.0.0.1", suppress_ragged_eofs=False
        )

    def httpx(self) -> httpx2.AsyncClient:
        """For SDKs."""
        return httpx2.AsyncClient(verify=self.context or True, trust_env=False)

    def curl(self) -> tuple[str, ...]:
        """Options."""
        return ("--cacert", str(TLS_FILES / "ca.pem")) if self.context else ()


def put_pair(source: Path, folder: Path) -> None:
    """Certificate and key of a gateway, each at once in place of what is there."""
    for name, mode in (("server.pem", 0o644), ("server.key", 0o600)):
        new = folder / f"{name}.new"
        shutil.copyfile(source / name, new)
        new.chmod(mode)
        new.rename(folder / name)


def tls_context() -> ssl.SSLContext:
    """Of a client that trusts the tests' CA."""
    return ssl.create_default_context(cafile=str(TLS_FILES / "ca.pem"))


WIRES = {"plain": Wire(), "tls": Wire(tls_context())}
OVER_BOTH_WIRES = pytest.mark.parametrize("wire", WIRES, indirect=True)


def half_close(link: socket.socket) -> None:
    """The client's system says that no more comes; TLS, if there is any, says nothing."""
    socket.socket.shutdown(link, socket.SHUT_WR)
