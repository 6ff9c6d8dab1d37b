"""The key that prompts and answers are kept under, where the operator has named one.

AES-256-GCM with a nonce of its own for each text, and the shadow's uid as what must fit. Beside
each text stands which key it is under. The key is in this process's memory alone.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import logging
import os
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from penstock.control.errors import SecretUnusable
from penstock.control.secrets_files import read_private

log = logging.getLogger(__name__)

KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
PLAIN: Final = ""
"""In the place of a key's id: the text is under none."""


class Vault:
    """Seals texts and opens them. Without a file texts stay as they are; with one that cannot be
    used nothing is sealed, and `trouble` says why."""

    def __init__(self, key_file: Path | None = None) -> None:
        """Reads the key."""
        self.key_id = PLAIN
        self.trouble = ""
        self._cipher: AESGCM | None = None
        if key_file is not None:
            self._take(key_file)

    def _take(self, path: Path) -> None:
        try:
            key = _key_of(path)
        except SecretUnusable as error:
            self.trouble = f"--record-key-file: {error}"
            log.error("no prompt and no answer is kept", extra={"error": self.trouble})
            return
        self._cipher = AESGCM(key)
        self.key_id = hashlib.sha256(b"penstock record key" + key).hexdigest()[:16]

    def seal(self, text: bytes, uid: str) -> bytes:
        """The text as it may be written. Only without `trouble`."""
        if self._cipher is None:
            return text
        nonce = os.urandom(NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, text, uid.encode())

    def open(self, sealed: bytes, key_id: str, uid: str) -> bytes | None:
        """What was sealed; None: under another key, or it is not what was written."""
        if key_id == PLAIN:
            return sealed
        if self._cipher is None or key_id != self.key_id:
            return None
        try:
            nonce, text = sealed[:NONCE_BYTES], sealed[NONCE_BYTES:]
            return self._cipher.decrypt(nonce, text, uid.encode())
        except (InvalidTag, ValueError):
            return None


def _key_of(path: Path) -> bytes:
    told = read_private(path)
    if len(told) == KEY_BYTES:
        return told
    try:
        key = base64.b64decode(told.strip().replace(b"-", b"+").replace(b"_", b"/"), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise SecretUnusable(
            f"{path} holds no key: it must be {KEY_BYTES} bytes, or these as base64, such as "
            "`openssl rand -base64 32` writes"
        )
    return key
