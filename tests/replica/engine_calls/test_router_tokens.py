"""Whose requests the REST of MicroServing takes."""

from __future__ import annotations

import hashlib

import pytest

from penstock.replica.engine_calls.router_tokens import RouterTokens


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def _status(tokens: RouterTokens, header: str, now: float = 0.0) -> int:
    failed = tokens.refusal(header, now)
    return failed.status if failed else 200


def test_a_token_is_taken_for_as_long_as_its_digest_was_told() -> None:
    tokens = RouterTokens()
    tokens.keep([_digest("one"), _digest("two")], 5000, now=0.0)
    assert _status(tokens, "Bearer one") == _status(tokens, "bearer two", 4.9) == 200
    tokens.keep([_digest("two")], 5000, now=1.0)
    assert _status(tokens, "Bearer one", 1.0) == 401
    assert _status(tokens, "Bearer two", 1.0) == 200


def test_before_tokens_were_told_and_when_they_are_too_old_none_is_taken() -> None:
    tokens = RouterTokens()
    assert _status(tokens, "Bearer one") == 503
    tokens.keep([_digest("one")], 5000, now=0.0)
    assert _status(tokens, "Bearer one", 5.0) == 503


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic one", "one", "Bearer  one"])
def test_what_is_no_bearer_token_is_refused(header: str) -> None:
    tokens = RouterTokens()
    tokens.keep([_digest("one"), _digest("")], 5000, now=0.0)
    assert _status(tokens, header) == 401


@pytest.mark.parametrize(
    ("digests", "valid_ms"), [([b"short"], 5000), ([_digest("a")], 0), ([_digest("a")], 60_001)]
)
def test_what_is_no_digest_or_holds_too_long_is_not_kept(
    digests: list[bytes], valid_ms: int
) -> None:
    tokens = RouterTokens()
    tokens.keep([_digest("one")], 5000, now=0.0)
    with pytest.raises(ValueError, match="give"):
        tokens.keep(digests, valid_ms, now=0.0)
    assert _status(tokens, "Bearer one") == 200
