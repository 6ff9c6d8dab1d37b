"""OpenMP's threads in a process that was forked: the library has read how many, and on which cores,
where it was loaded, which was in another process and for no engine yet."""

from __future__ import annotations

import os
from typing import Any

from penstock.replica.vllm.start import environment


def settle_threads(torch: Any) -> None:
    """As many as a process has that begins with this environment, on the cores that it names.

    Before the first of them: a parallel region must not have run, in any process that this one
    was forked of. In each process that computes, for setting the number starts some.
    """
    if cpus := environment.cpus():
        os.sched_setaffinity(0, cpus)
    wanted = environment.threads()
    if torch.get_num_threads() != wanted:
        torch.set_num_threads(wanted)
