"""What of vLLM is needed where it is imported before its model is known: by a warm pool."""

from __future__ import annotations

from functools import partial
from typing import Final

from penstock.replica.vllm.surface.values import Stage, Touch

_pool: Final = partial(Touch, Stage.POOL)

ON_THE_WAY: Final = (
    "vllm.distributed.elastic_ep.elastic_execute",
    "vllm.entrypoints.scale_out.factories",
    "vllm.entrypoints.serve.instrumentator.metrics",
    "vllm.entrypoints.serve.instrumentator.offline_docs",
    "vllm.entrypoints.serve.utils.fingerprint",
    "vllm.model_executor.layers.quantization.online.base",
    "vllm.model_executor.models.bert",
    "vllm.model_executor.models.qwen2",
    "vllm.model_executor.models.qwen3",
    "vllm.tool_parsers.hermes_tool_parser",
    "vllm.v1.core.sched.scheduler",
    "vllm.v1.executor.multiproc_executor",
    "vllm.v1.pool.flash_maxsim",
    # What a schema takes, which the self-test of resume asks for.
    "vllm.v1.structured_output.backend_lm_format_enforcer",
    "vllm.v1.structured_output.backend_outlines",
)
"""What an engine's start imports on its way, of those that many models take."""

OF_POOL: Final = (
    _pool(
        ("vllm.entrypoints", *ON_THE_WAY),
        ("start/warm.py",),
        "an engine's start imports them on its way, whatever its model; so do its routes' modules "
        "below `vllm.entrypoints`, called `api_router`",
        "vLLM imports in a second",
    ),
    _pool(
        (
            "vllm.platforms:current_platform.import_kernels()",
            "vllm.platforms:current_platform.register_triton_kernel_overrides()",
            "vllm.platforms:current_platform.device_type",
            "vllm.plugins:load_general_plugins()",
        ),
        ("start/warm.py",),
        "each process of each engine does it, and it depends on no model",
        "vLLM forks its engine by itself",
    ),
)
