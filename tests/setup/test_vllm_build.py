"""Which vLLM build a machine gets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from console import SetupError
from vllm_build import CHOICE, choose

Smi = Callable[[int], dict[str, str]]


@pytest.fixture
def smi(tmp_path: Path) -> Smi:
    """Makes an `nvidia-smi` that exits as told, and returns an environment that finds it."""

    def make(code: int) -> dict[str, str]:
        program = tmp_path / "nvidia-smi"
        program.write_text(f"#!/bin/sh\nexit {code}\n")
        program.chmod(0o755)
        return {"PATH": str(tmp_path)}

    return make


def test_a_gpu_that_answers_gets_the_cuda_build(smi: Smi) -> None:
    assert choose(smi(0), None) == "cuda"


def test_a_driver_without_a_gpu_gets_the_cpu_build(smi: Smi) -> None:
    assert choose(smi(9), None) == "cpu"


def test_a_machine_without_a_driver_gets_the_cpu_build(tmp_path: Path) -> None:
    assert choose({"PATH": str(tmp_path)}, None) == "cpu"


def test_a_build_that_is_asked_for_by_name_is_taken(smi: Smi) -> None:
    assert choose({**smi(0), CHOICE: "cpu"}, "cuda") == "cpu"
    assert choose({**smi(9), CHOICE: "cuda"}, "cpu") == "cuda"


def test_a_build_that_there_is_not_is_refused() -> None:
    with pytest.raises(SetupError, match=r"PENSTOCK_VLLM_BUILD=rocm: say cpu or cuda"):
        choose({CHOICE: "rocm"}, None)


def test_the_build_that_is_installed_is_kept_whatever_a_driver_says(smi: Smi) -> None:
    assert choose(smi(9), "cuda") == "cuda"
    assert choose(smi(0), "cpu") == "cpu"


def test_that_a_gpu_could_be_used_is_told(smi: Smi, capsys: pytest.CaptureFixture[str]) -> None:
    choose(smi(0), "cpu")
    assert "PENSTOCK_VLLM_BUILD=cuda" in capsys.readouterr().out
