"""The errors that the replica itself knows of."""

from __future__ import annotations

from penstock.replica.vllm.failures import errors


def test_a_full_engine_may_be_tried_elsewhere_and_later() -> None:
    failed = errors.overloaded("busy")
    assert (failed.status, failed.code, failed.fault) == (503, "overloaded", "upstream")
    assert failed.retryable
    assert failed.retry_after_ms > 0


def test_an_inner_error_tells_the_client_nothing_of_what_it_was() -> None:
    failed = errors.internal(KeyError("secret"))
    assert (failed.status, failed.code, failed.retryable) == (500, "internal_error", False)
    assert "secret" not in failed.message
    assert "KeyError" not in failed.message


def test_want_of_memory_inside_a_group_is_contained() -> None:
    assert errors.internal(ExceptionGroup("", [MemoryError()])).code == "oom_contained"


def test_an_answer_without_a_reason_keeps_its_status() -> None:
    assert (errors.unexplained(418).status, errors.unexplained(418).fault) == (418, "client")
    assert (errors.unexplained(502).status, errors.unexplained(502).fault) == (502, "upstream")
