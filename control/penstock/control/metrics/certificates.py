"""When certificates end, as their files say now: who renews them replaces the files."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from cryptography import x509

log = logging.getLogger(__name__)


def certificate_ends(files: Mapping[str, Path | None]) -> dict[str, float]:
    """Seconds since 1970, of each that there is: the first certificate of its file, which is the
    server's. One that cannot be read is left out."""
    found = {}
    for name, file in files.items():
        if file is None:
            continue
        try:
            certificate = x509.load_pem_x509_certificate(file.read_bytes())
        except (OSError, ValueError) as error:
            log.debug("the certificate in %s cannot be read: %s", file, error)
            continue
        found[name] = certificate.not_valid_after_utc.timestamp()
    return found
