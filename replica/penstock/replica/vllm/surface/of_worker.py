"""What of vLLM is needed in the engine's process on a CPU, and to write files for other rooms."""

from __future__ import annotations

from functools import partial
from typing import Final

from penstock.replica.vllm.surface.values import Stage, Touch

_CHAT: Final = "vllm.entrypoints.openai.chat_completion"
_RESPONSES: Final = "vllm.entrypoints.openai.responses"
_ANTHROPIC: Final = "vllm.entrypoints.anthropic"
_worker: Final = partial(Touch, Stage.WORKER)
_writing: Final = partial(Touch, Stage.WRITING)

OF_WORKER: Final = (
    _worker(
        (
            "vllm.lora.punica_wrapper.punica_cpu",
            "vllm.v1.attention.backends.cpu_attn",
        ),
        ("start/warm.py",),
        "a warm pool imports them before an engine's start does on its way",
        "vLLM imports in a second",
    ),
    _worker(
        (
            "vllm.v1.worker.cpu_worker:CPUWorker",
            "vllm.v1.worker.gpu_worker",
            "vllm.model_executor.models.llama",
        ),
        ("start/imports.py",),
        "a forked engine imports them while it waits",
        "vLLM forks its engine by itself",
    ),
    _worker(
        (
            "vllm.v1.worker.gpu_input_batch:CachedRequestState{generator, sampling_params}",
            "vllm.v1.worker.gpu_input_batch:CachedRequestState.__post_init__",
            "vllm.v1.worker.gpu_model_runner:GPUModelRunner._sample(logits, spec_decode_metadata)",
            "vllm.v1.worker.gpu_input_batch:InputBatch{generators}",
        ),
        ("start/cpu_cures.py",),
        "a seed and a prompt longer than a step end the CPU build",
        "`test_killers.py` passes without the cure",
    ),
    _worker(
        (
            "vllm.v1.worker.gpu_model_runner:GPUModelRunner._get_prompt_logprobs_dict"
            "(hidden_states, num_scheduled_tokens)",
            "vllm.v1.worker.gpu_model_runner:GPUModelRunner{num_prompt_logprobs, input_batch, "
            "query_start_loc}",
            "vllm.lora.punica_wrapper.punica_cpu:PunicaWrapperCPU.add_lora_logits",
            "vllm.lora.punica_wrapper.punica_cpu:PunicaWrapperCPU{token_lora_indices, "
            "_sampler_indices, indices_len}",
        ),
        ("start/cpu_cures.py",),
        "log probabilities of a prompt beside adapters end the CPU build",
        "`test_killers.py` passes without the cure",
    ),
    _worker(
        ("torch.cpu:_is_amx_tile_supported()", "torch.cpu:_init_amx()"),
        ("start/amx.py",),
        "the kernel's leave for AMX is asked for before kernels use it",
        "torch or vLLM asks",
    ),
    _writing(
        (
            f"{_ANTHROPIC}.protocol",
            f"{_CHAT}.protocol",
            "vllm.entrypoints.openai.completion.protocol",
            f"{_RESPONSES}.protocol",
            "vllm.entrypoints.pooling.classify.protocol",
            "vllm.entrypoints.pooling.embed.protocol",
            "vllm.entrypoints.pooling.pooling.protocol",
            "vllm.entrypoints.pooling.scoring.protocol",
            "vllm.entrypoints.serve.tokenize.protocol",
        ),
        ("exports/described.py",),
        "the description of the API is made of vLLM's models",
        "vLLM's own description names them by endpoint",
    ),
)
