"""Certificates that a test makes: they sign themselves, and end when the test wants."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


def write_pair(cert: Path, key: Path, lasts: timedelta) -> None:
    """A certificate of 127.0.0.1 and its key, as PEM files; it is its own authority."""
    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "penstock test")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + lasts)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        .sign(private, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    cert.write_bytes(made.public_bytes(pem))
    key.write_bytes(
        private.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
