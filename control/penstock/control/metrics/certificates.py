"""When certificates end, as their files say now: who renews them replaces the files."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

log = logging.getLogger(__name__)


def certificate_ends(files: Mapping[str, Path | None]) -> dict[str, float]:
    """Seconds since 1970, of each that there is: the first certificate of its file, which is the
    server's. 0: it cannot be read."""
    from cryptography import x509  # which a head without TLS need not import

    found = {}
    for name, file in files.items():
        if file is None:
            continue
        try:
            certificate = x509.load_pem_x509_certificate(file.read_bytes())
            found[name] = certificate.not_valid_after_utc.timestamp()
        except (OSError, ValueError) as error:
            log.debug("the certificate in %s cannot be read: %s", file, error)
            found[name] = 0.0
    return found
