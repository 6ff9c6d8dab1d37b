"""Which hosts this node sends anything to. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.replica.engine import CannotLoad


class Hosts:
    """Names of hosts, `*.example.com` for all below one; none at all: every host is allowed."""

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        self._patterns = tuple(_plain(pattern) for pattern in patterns)
        for pattern in self._patterns:
            rest = pattern.removeprefix("*.")
            if not rest or set(rest) & set("*/@ ") or "://" in pattern:
                raise CannotLoad(
                    f"settings: --provider-hosts: {pattern!r} is no host: say api.example.com or "
                    "*.example.com"
                )

    def allow(self, host: str) -> bool:
        """Whether something may be sent to this host."""
        name = _plain(host)
        return not self._patterns or any(_fits(name, pattern) for pattern in self._patterns)


def _fits(name: str, pattern: str) -> bool:
    if pattern.startswith("*."):
        return name.endswith(pattern[1:]) and len(name) > len(pattern) - 1
    return name == pattern


def _plain(host: str) -> str:
    return host.strip().lower().removesuffix(".").removeprefix("[").removesuffix("]")


__all__ = ["Hosts"]
