"""Secrets by reference: variables of this process, files below the node's secrets directory.

Read whenever they are used, so that a rotated secret needs no restart. What was read is never
logged, and `scrubbed` takes it out of texts that others wrote.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

_MOST_BYTES: Final = 64 << 10
_LOOKS_SECRET: Final = re.compile(
    r"\bsk-[\w*-]{6,}|\b(?:AKIA|ASIA)[0-9A-Z]{12,}|\bBearer\s+[^\s\"']+|\bCredential=[^\s,\"']+"
    r"|\bSignature=[^\s,\"']+|://[^\s/@:]+:[^\s/@]+@"
)
_HIDDEN: Final = "[secret]"
_HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class NoSecret(Exception):
    """A secret that cannot be had. `str()` names where it was looked for, and nothing of it."""


class Secrets:
    """The secrets that this replica may read. `directory`: empty: there are no files."""

    def __init__(
        self,
        directory: str,
        environment: Mapping[str, str] = os.environ,
        variables: Sequence[str] = (),
    ) -> None:
        """`variables`: names, with * for any letters, of those that may be read."""
        self._directory = directory
        self._environment = environment
        self._variables = variables

    def variable(self, name: str) -> str:
        """The secret in a variable. Raises `NoSecret`."""
        if not any(fnmatchcase(name, allowed) for allowed in self._variables):
            raise NoSecret(
                f"the variable {name} is none that this node lets deployments name, which are"
                f" {', '.join(self._variables)}: its owner can list it in"
                " PENSTOCK_PROVIDER_VARIABLES of the node agent's environment"
            )
        secret = self._environment.get(name, "").strip()
        if not secret:
            raise NoSecret(f"the variable {name} is not set in the environment of the node agent")
        return _for_header(secret, f"the variable {name}")

    def file(self, name: str) -> str:
        """The secret in a file below the directory. Raises `NoSecret`."""
        text = self._read(name).strip()
        if not text:
            raise NoSecret(f"the secret file {name} is empty")
        return _for_header(text, f"the secret file {name}")

    def headers(self, name: str) -> dict[str, str]:
        """The headers in a file, `Name: value` on each line. Raises `NoSecret`."""
        headers: dict[str, str] = {}
        for number, line in enumerate(self._read(name).splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            key, colon, value = line.partition(":")
            where = f"line {number} of the headers file {name}"
            if not colon or not _HEADER_NAME.fullmatch(key.strip()):
                raise NoSecret(f"{where} is not of the form `Name: value`")
            headers[key.strip()] = _for_header(value.strip(), where)
        return headers

    def _read(self, name: str) -> str:
        path = self._place(name)
        try:
            with path.open("rb") as file:
                content = file.read(_MOST_BYTES + 1)
            if len(content) > _MOST_BYTES:
                raise NoSecret(f"the secret file {name} has more than {_MOST_BYTES} bytes")
            return content.decode()
        except OSError as error:
            raise NoSecret(f"cannot read the secret file {name}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise NoSecret(f"the secret file {name} is no text") from None

    def _place(self, name: str) -> Path:
        """Where the file is; inside the directory, also where links lead."""
        if not self._directory:
            raise NoSecret(f"there is no secrets directory to read {name} from: set --secrets-dir")
        named = Path(name)
        if not name or named.is_absolute() or ".." in named.parts:
            raise NoSecret(f"{name!r} is no relative path below the secrets directory")
        inside = Path(self._directory).resolve()
        place = (inside / named).resolve()
        if not place.is_relative_to(inside):
            raise NoSecret(f"the secret file {name} leads out of the secrets directory")
        return place


def scrubbed(text: str, secrets: Iterable[str] = ()) -> str:
    """The text without these secrets, and without what looks like one."""
    for secret in secrets:
        if len(secret) >= 4:
            text = text.replace(secret, _HIDDEN)
    return _LOOKS_SECRET.sub(_HIDDEN, text)


def _for_header(secret: str, where: str) -> str:
    if not secret.isascii() or not secret.isprintable():
        raise NoSecret(f"{where} holds characters that no header can carry")
    return secret
