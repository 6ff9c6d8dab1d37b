"""What a process of the cluster shows to the others, and asks of them: read once, at its start.

The cluster token goes with every call between head, agents, gateways and replicas. TLS is for the
ways that leave a machine: head's and agents' gRPC, and the admin API.
"""

from __future__ import annotations

import secrets
import ssl
from dataclasses import dataclass, field
from pathlib import Path

from penstock.control.errors import CannotStart
from penstock.control.secrets_files import made_or_read, read_secret
from penstock.control.settings import TlsFiles

TOKEN_BYTES = 32
SCHEME = "Bearer "


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A server's certificate chain and private key, both PEM."""

    chain: bytes
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class ClusterSecurity:
    """The values themselves. An empty token is neither sent nor asked for."""

    token: str = field(default="", repr=False)
    server: KeyPair | None = None  # None: served without TLS
    authorities: bytes | None = None  # PEM; None: dialled without TLS

    @property
    def authorization(self) -> str:
        """What calls carry as metadata "authorization"; empty without a token."""
        return f"{SCHEME}{self.token}" if self.token else ""


OPEN = ClusterSecurity()


def cluster_security(token_file: Path | None, tls: TlsFiles) -> ClusterSecurity:
    """Reads the files. Raises `CannotStart` (`SecretUnusable`) naming the one that is no good."""
    return ClusterSecurity(
        token=read_secret(token_file) if token_file else "",
        server=_key_pair(tls),
        authorities=_authorities(tls.ca) if tls.ca else None,
    )


def make_cluster_token(path: Path) -> None:
    """Makes the token where there is none: 32 random bytes as hex, mode 0600."""
    made_or_read(path, lambda: secrets.token_hex(TOKEN_BYTES))


def _key_pair(tls: TlsFiles) -> KeyPair | None:
    if tls.cert is None or tls.key is None:
        return None
    try:
        # Finds a key that does not fit, or is encrypted, before a server fails less clearly.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(tls.cert, tls.key, password=b"")
        return KeyPair(tls.cert.read_bytes(), tls.key.read_bytes())
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise CannotStart(
            f"--tls-cert {tls.cert} and --tls-key {tls.key} cannot be used: {error}; "
            "both are PEM files, the key without a passphrase"
        ) from error


def _authorities(path: Path) -> bytes:
    try:
        ssl.create_default_context(cafile=str(path))
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise CannotStart(
            f"--tls-ca {path} cannot be used: {error}; it is a PEM file of certificates"
        ) from error
