"""Which bearer tokens of role `router` a replica takes: digests that its agent tells, for a while.

Pure: callers pass `now`, in seconds of a clock that only goes on.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from typing import Final

from penstock.replica.values import Failed

_SCHEME: Final = "bearer "
_MOST: Final = 10_000
_MOST_MS: Final = 60_000
_BYTES: Final = 32


class RouterTokens:
    """The digests that were told last."""

    def __init__(self) -> None:
        self._digests: tuple[bytes, ...] | None = None
        self._until = 0.0

    def keep(self, sha256s: Sequence[bytes], valid_ms: int, now: float) -> None:
        """Takes these from now on, and none once `valid_ms` are over. Raises `ValueError`."""
        if len(sha256s) > _MOST or any(len(one) != _BYTES for one in sha256s):
            raise ValueError(f"sha256s: give at most {_MOST} digests of {_BYTES} bytes")
        if not 0 < valid_ms <= _MOST_MS:
            raise ValueError(f"valid_ms is {valid_ms}: give 1 to {_MOST_MS}")
        self._digests = tuple(sha256s)
        self._until = now + valid_ms / 1000

    def refusal(self, authorization: str, now: float) -> Failed | None:
        """Why a request with this header gets nothing; None: it is a router's."""
        if self._digests is None:
            return _unknown("this replica has not been told of any tokens yet; ask again soon")
        if now >= self._until:
            return _unknown("what this replica was told of tokens is too old; is its agent there?")
        token = authorization[len(_SCHEME) :]
        if authorization[: len(_SCHEME)].lower() != _SCHEME or not token:
            return _wrong("send a token of role router: 'authorization: Bearer <token>'")
        digest = hashlib.sha256(token.encode()).digest()
        # Each is compared to its end: how long it takes tells nothing.
        found = [hmac.compare_digest(digest, one) for one in self._digests]
        return None if any(found) else _wrong("the token is not of role router, or was revoked")


def _unknown(why: str) -> Failed:
    return Failed(503, "server_error", "router_tokens_unknown", f"No token is taken: {why}.")


def _wrong(why: str) -> Failed:
    message = f"MicroServing's REST is for routers: {why}."
    return Failed(401, "authentication_error", "invalid_router_token", message, fault="client")
