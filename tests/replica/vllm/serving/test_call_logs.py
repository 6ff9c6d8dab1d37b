"""What vLLM's loggers say of a call: nothing that its client wrote."""

from __future__ import annotations

import io
import logging
import logging.config
from collections.abc import Iterator

import pytest

from penstock.replica.values import Call
from penstock.replica.vllm.failures import errors
from penstock.replica.vllm.serving.tap import CURRENT, CallTap
from penstock.replica.vllm.start.causes import log_config

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]

Log = tuple[logging.Logger, io.StringIO]


@pytest.fixture
def log() -> Log:
    """A logger as vLLM's are in the replica's process, and where it writes."""
    text = io.StringIO()
    config = log_config("WARNING")
    config["handlers"]["stderr"]["stream"] = text
    config["loggers"] = {"test_call_logs": config["loggers"]["vllm"]}
    logging.config.dictConfig(config)
    return logging.getLogger("test_call_logs.renderer"), text


@pytest.fixture
def tap() -> Iterator[CallTap]:
    """The call on whose behalf this runs."""
    tap = CallTap(Call("req_1", "/v1/completions", b"{}", "m"))
    tap.parsed = True
    token = CURRENT.set(tap)
    yield tap
    CURRENT.reset(token)


def _raised(log: Log, error: Exception) -> str:
    try:
        raise error
    except Exception:
        log[0].exception("Error in preprocessing: %s", error)
    return log[1].getvalue()


def test_a_clients_mistake_leaves_nothing(log: Log, tap: CallTap) -> None:
    assert _raised(log, ValueError("my secret grammar")) == ""


def test_what_a_client_made_the_engine_drop_leaves_nothing(log: Log, tap: CallTap) -> None:
    tap.lost = errors.nothing_allowed("structured_outputs")
    assert _raised(log, RuntimeError("dropped")) == ""


def test_a_fault_of_the_engine_stays_whole(log: Log, tap: CallTap) -> None:
    said = _raised(log, RuntimeError("device lost"))
    assert "Traceback" in said
    assert "device lost" in said


def test_warnings_without_an_exception_go_nowhere_and_errors_without_values(
    log: Log, tap: CallTap
) -> None:
    log[0].warning("Chat template rejected the request: my secret role")
    log[0].error("The engine gave nothing for %s", "my secret role")
    said = log[1].getvalue()
    assert "Chat template" not in said
    assert "The engine gave nothing" in said
    assert "secret" not in said


def test_outside_of_calls_everything_is_told(log: Log) -> None:
    log[0].warning("loading %s", "the model")
    assert "loading the model" in log[1].getvalue()
    assert "Traceback" in _raised(log, ValueError("no such dtype"))
