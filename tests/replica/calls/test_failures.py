"""Failures that a call meets at any engine."""

from __future__ import annotations

from penstock.replica.calls import failures
from penstock.replica.values import Call

CHAT = "/v1/chat/completions"


def test_an_adapter_that_is_not_loaded_is_told_by_its_name() -> None:
    failed = failures.unknown_adapter(Call("r", CHAT, b"", "mini:x", adapter="x@1"))
    assert (failed.status, failed.code) == (404, "model_not_found")
    assert "mini:x" in failed.message
    assert "x@1" in failed.message
