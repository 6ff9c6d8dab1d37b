"""A router program as a deployment's settings name it, and the roles that its replicas have."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from penstock.control.declared.fields import Form, check, setting
from penstock.control.errors import InvalidSpec
from penstock.control.state.routing.program import (
    VERBS,
    ProgramFacts,
    Texts,
    check_program,
    digest_of,
)

MOST_OF_A_ROLE: Final = 1000
_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
_MODULE = re.compile(r"[A-Za-z_]\w{0,62}(\.[A-Za-z_]\w{0,62}){0,7}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


class Sees(StrEnum):
    """What a program is given of a prompt."""

    LENGTHS = "lengths"  # how long it is, and the hashes of its blocks
    TOKENS = "tokens"  # its token ids and text, too


class Role(StrEnum):
    """What a replica is for; its engine keeps no mode."""

    PREFILL = "prefill"
    DECODE = "decode"


@dataclass(frozen=True, slots=True)
class Roles:
    """How many replicas have each role; none has one where both are 0."""

    prefill: int = setting(
        "of the replicas, those that router programs have compute prompts; 0 of both: no roles",
        0,
        ge=0,
        le=MOST_OF_A_ROLE,
    )
    decode: int = setting(
        "likewise, those that generate; the two together are `replicas`",
        0,
        ge=0,
        le=MOST_OF_A_ROLE,
    )

    def __post_init__(self) -> None:
        check(self, InvalidSpec, within="roles.")
        if self.prefill and not self.decode:
            raise InvalidSpec("roles.decode is 0: a replica has to generate")

    @property
    def total(self) -> int:
        """Replicas that have one."""
        return self.prefill + self.decode

    def __str__(self) -> str:
        return f"{self.prefill} prefill, {self.decode} decode"


@dataclass(frozen=True, slots=True)
class Program:
    """One of: a name of those that ship, a module, or the digest of a file's text."""

    name: str = ""
    module: str = ""
    digest: str = ""
    args: tuple[tuple[str, Any], ...] = ()  # sorted
    text: str = field(default="", compare=False, repr=False)  # where it was said just now

    @property
    def known_as(self) -> str:
        """For people."""
        return self.name or self.module or f"the file {self.digest[:12]}"

    @property
    def args_json(self) -> bytes:
        """As gateways hand them to it."""
        return json.dumps(dict(self.args), sort_keys=True, separators=(",", ":")).encode()


def digest_in(program: Program, shipped: Texts) -> str:
    """By which gateways and node agents know it; empty: no such program ships."""
    if program.module:
        return digest_of(f"module:{program.module}")
    if program.name:
        return digest_of(shipped[program.name]) if program.name in shipped else ""
    return program.digest


def facts_of(program: Program, stored: Texts, shipped: Texts) -> ProgramFacts | None:
    """What it says of itself; None: nothing has its text. Of a module it is not known: it may use
    whatever there is."""
    if program.module:
        return ProgramFacts(VERBS)
    text = program.text or stored.get(program.digest)
    if program.name:
        text = shipped.get(program.name)
    return check_program(text) if text is not None else None


def _plain(program: Program | None) -> dict[str, Any] | None:
    """Without its text, which is stored by its digest."""
    if program is None:
        return None
    ways = {"name": program.name, "module": program.module, "digest": program.digest}
    return {k: v for k, v in ways.items() if v} | {"args": dict(program.args)}


def _read(said: Any) -> Program | None:
    """Raises `InvalidSpec`."""
    if not said:
        return None
    given = {key: value for key, value in said.items() if value}
    text, digest = given.get("file", ""), given.get("digest", "")
    if ("name" in given) + ("module" in given) + bool(text or digest) != 1:
        raise InvalidSpec("program: say one of name, file, module")
    _check_named(given)
    if text:
        check_program(text)
        if digest and digest != digest_of(text):
            raise InvalidSpec("program.digest is not that of program.file: leave it out")
        digest = digest_of(text)
    return Program(
        name=given.get("name", ""),
        module=given.get("module", ""),
        digest=digest,
        args=tuple(sorted(given.get("args", {}).items())),
        text=text,
    )


def _check_named(given: Mapping[str, Any]) -> None:
    for way, pattern in (("name", _NAME), ("module", _MODULE), ("digest", _DIGEST)):
        if way in given and not pattern.fullmatch(given[way]):
            raise InvalidSpec(f"program.{way} is {given[way]!r}: there is none of such a name")


PROGRAM: Final = Form(_plain, _read)
"""How documents have it, and how it is said."""
