"""What the fork server of `engine_nursery.py` imports, before it forks."""

from __future__ import annotations

import atexit
import gc
import os
import tempfile
from pathlib import Path

from penstock.replica.vllm.start import environment, imports
from penstock.replica.vllm.start.causes import Causes

with tempfile.TemporaryDirectory() as folder:
    log_here, _ = Causes(Path(folder)).log_configs(environment.log_level())
    environment.prepare(offline=True, threads=1, log_config=log_here)
    gc.disable()
    imports.shared()
    imports.worker()
    gc.freeze()
    gc.enable()

atexit.register(os._exit, 0)  # libraries would tell of what they leaked
