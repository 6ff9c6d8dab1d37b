"""Which exit code an error means."""

from __future__ import annotations

import pytest

from penstock.replica.endings import (
    EngineDied,
    EngineHung,
    ExitCode,
    NotRegistered,
    exit_code_of,
)
from penstock.replica.values import CannotLoad, EngineError


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (EngineDied("killed"), ExitCode.ENGINE_DIED),
        (EngineError("the engine did not start"), ExitCode.ENGINE_DIED),
        (EngineHung("no step"), ExitCode.ENGINE_HUNG),
        (CannotLoad("no such model"), ExitCode.CANNOT_LOAD),
        (NotRegistered("refused"), ExitCode.NOT_REGISTERED),
        (KeyError("a fault of ours"), ExitCode.INTERNAL),
        (MemoryError(), ExitCode.INTERNAL),
    ],
)
def test_only_an_engines_errors_count_as_its_death(error: BaseException, code: ExitCode) -> None:
    assert exit_code_of(error) == code
