"""Which vLLM build a machine gets, and when .venv cannot be kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import python_env
from console import SetupError

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
    assert python_env.engine_lock(smi(0)) == "cuda"


def test_a_driver_without_a_gpu_gets_the_cpu_build(smi: Smi) -> None:
    assert python_env.engine_lock(smi(9)) == "cpu"


def test_a_machine_without_a_driver_gets_the_cpu_build(tmp_path: Path) -> None:
    assert python_env.engine_lock({"PATH": str(tmp_path)}) == "cpu"


def test_a_build_that_is_asked_for_by_name_is_taken(smi: Smi) -> None:
    assert python_env.engine_lock({**smi(0), python_env.BUILD: "cpu"}) == "cpu"
    assert python_env.engine_lock({**smi(9), python_env.BUILD: "cuda"}) == "cuda"


def test_a_build_that_there_is_not_is_refused() -> None:
    with pytest.raises(SetupError, match=r"PENSTOCK_VLLM_BUILD=rocm: say cpu or cuda"):
        python_env.engine_lock({python_env.BUILD: "rocm"})


@pytest.mark.parametrize(
    ("locks", "begun", "other"),
    [
        (("cpu", "dev"), (), None),
        (("cpu", "dev"), ("cpu",), None),
        (("cuda", "dev"), ("cpu",), "cpu"),
        (("cpu",), ("cuda",), "cuda"),
        (("cpu",), ("cpu", "cuda"), "cuda"),
        (("core",), ("cuda",), None),
    ],
)
def test_an_environment_is_kept_unless_it_holds_the_other_build(
    locks: tuple[str, ...], begun: tuple[str, ...], other: str | None
) -> None:
    assert python_env.misfit(locks, begun) == other


@pytest.mark.parametrize("name", ["cuda", "torch-ordinary"])
def test_ordinary_torch_is_pinned_so_that_no_other_build_of_it_fits(name: str) -> None:
    text = (python_env.LOCKS / f"{name}.txt").read_text()
    assert "\ntorch===2." in text
    assert "\ntorch==2." not in text
