"""Loaded into the process in which vLLM's worker runs, by --worker-extension-cls.

Importing it is what counts. It comes after torch and before the model: leave to use AMX is asked
for first, then signals that end the process get their traceback written (`causes.py`), which takes
a signal stack of its own; on a CPU the faults of vLLM's CPU build are cured. Last the runner learns
to go on with what others began (`resume/drawing.py`).
"""

from __future__ import annotations

import torch
from vllm.platforms import current_platform

from penstock.replica.vllm import surface
from penstock.replica.vllm.start import engine_process
from penstock.replica.vllm.start.amx import settle_amx
from penstock.replica.vllm.start.threads import settle_threads
from penstock.replica.vllm.surface.values import Stage


class Extension:
    """Mixed into vLLM's worker, to which it adds nothing."""


engine_process.die_with_parent()
if engine_process.is_forked() and current_platform.is_cpu():
    settle_threads(torch)
settle_amx(torch.cpu)
engine_process.write_faults()
if current_platform.is_cpu():
    surface.check(Stage.WORKER)
    from penstock.replica.vllm.start.cpu_cures import cure_prompt_logprobs, cure_seeds

    cure_seeds()
    cure_prompt_logprobs()

surface.check(Stage.PROCESS)
from penstock.replica.vllm.resume import drawing  # noqa: E402 - once it is known to be there

drawing.install()
