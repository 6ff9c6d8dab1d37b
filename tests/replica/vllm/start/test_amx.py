"""Leave to use AMX: asked wherever the CPU has tiles, done without where it is refused."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from penstock.replica.vllm.start.amx import settle_amx
from penstock.replica.vllm.start.engine_process import FAULTS


class FakeCpu:
    """A CPU as `torch.cpu` tells of it; `leave`: what the kernel answers."""

    def __init__(self, *, tiles: bool, leave: bool) -> None:
        self._tiles = tiles
        self._leave = leave
        self.asked = 0

    def _is_amx_tile_supported(self) -> bool:
        return self._tiles

    def _init_amx(self) -> bool:
        self.asked += 1
        return self._leave


@pytest.mark.parametrize(
    ("tiles", "leave", "asked", "used"),
    [(False, True, 0, False), (True, True, 1, True), (True, False, 1, False)],
)
def test_tiles_are_used_only_with_the_kernels_leave(
    *, tiles: bool, leave: bool, asked: int, used: bool
) -> None:
    cpu = FakeCpu(tiles=tiles, leave=leave)
    settle_amx(cpu)
    assert cpu.asked == asked
    assert cpu._is_amx_tile_supported() is used


_WORKER = """
import faulthandler, os, torch
def first(word):
    print(word, flush=True)
    os._exit(0)
torch.cpu._is_amx_tile_supported = lambda: True
torch.cpu._init_amx = lambda: first("asked")
faulthandler.enable = lambda *a, **k: first("faulthandler")
import penstock.replica.vllm.start.worker
"""


@pytest.mark.vllm
def test_the_workers_module_asks_before_anything_installs_a_signal_stack() -> None:
    """On any machine: torch is told that this CPU has tiles. What comes first ends the process."""
    # An engine that a test before started in this process had a file for its faults.
    environment = {name: value for name, value in os.environ.items() if name != FAULTS}
    done = subprocess.run(
        [sys.executable, "-c", _WORKER],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "asked"
