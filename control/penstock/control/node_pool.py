"""The warm pool of a node agent, built: of vLLM, or of what a test puts in its place."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.control.data_dir import logs_path
from penstock.control.node_agent.warm_dependencies import PoolDependencies
from penstock.control.node_agent.warm_policy import PATIENCE, Patience
from penstock.control.node_agent.warm_pool import WarmPool
from penstock.control.outside.clock import SystemClock
from penstock.control.outside.installed_code import installed_code, vllm_build
from penstock.control.outside.machine import available_memory
from penstock.control.outside.warm_processes import ZYGOTE, start_zygote
from penstock.control.settings import NodeSettings


@dataclass(frozen=True, slots=True)
class WarmSetup:
    """What a warm pool is made of."""

    engine: str = "vllm"
    argv: tuple[str, ...] = (*ZYGOTE, "--engine", "vllm")
    patience: Patience = PATIENCE


VLLM = WarmSetup()


def warm_pool(settings: NodeSettings, setup: WarmSetup) -> WarmPool:
    """The pool, not filled yet."""
    log_path = logs_path(settings.data_dir) / "warm-pool.log"
    needs = PoolDependencies(
        engine=setup.engine,
        start_zygote=lambda observe: start_zygote(setup.argv, log_path, observe),
        installed_code=installed_code,
        memory_available=available_memory,
        clock=SystemClock(),
        patience=setup.patience,
    )
    return WarmPool(needs, settings.warm, vllm_build())
