"""Which of vLLM's two builds this machine gets: the one for CPUs, or the one for NVIDIA GPUs."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping

from console import SetupError, say

BUILDS = ("cpu", "cuda")
CHOICE = "PENSTOCK_VLLM_BUILD"  # one of them, where what the machine says is not what is wanted
SMI_SECONDS = 20  # a sick GPU can hold nvidia-smi for ever


def choose(environment: Mapping[str, str], installed: str | None) -> str:
    """The build to run, by the name of its lock.

    What `CHOICE` in the environment names, else what is `installed` already, else CUDA where an
    NVIDIA GPU answers and CPU where none does. Raises `SetupError` when `CHOICE` names no build.
    """
    chosen = environment.get(CHOICE)
    if chosen:
        if chosen not in BUILDS:
            raise SetupError(f"{CHOICE}={chosen}: say cpu or cuda, or leave it out")
        return chosen
    if installed == "cuda":
        return installed
    answers = gpu_answers(environment)
    if installed and answers:
        say(f"an NVIDIA GPU is here, .venv holds vLLM's CPU build: {CHOICE}=cuda takes the other")
    return installed or ("cuda" if answers else "cpu")


def gpu_answers(environment: Mapping[str, str]) -> bool:
    """Whether `nvidia-smi` lists a GPU."""
    smi = shutil.which("nvidia-smi", path=environment.get("PATH"))
    if smi is None:
        return False
    try:
        listed = subprocess.run([smi, "-L"], capture_output=True, check=False, timeout=SMI_SECONDS)
    except subprocess.TimeoutExpired:
        say(f"nvidia-smi says nothing for {SMI_SECONDS} s: going on as without a GPU")
        return False
    return listed.returncode == 0
