"""What a process that was forked with vLLM imported may still become."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from penstock.replica.vllm.start.arguments import MODEL_CODE
from penstock.replica.vllm.start.cold_starts import RULES, Imported, why_cold

_CPU = Imported("0.32.0", "cpu")
_GPU = Imported("0.32.0", "cuda")


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"max_model_len": "64", "cpu_threads": "2", "cpu_kvcache_gib": "0.25"},
        {"tensor_parallel_size": "2", "distributed_executor_backend": "mp"},
        {"enforce_eager": "true"},
        {"trust-remote-code": "false"},
        {"speculative_config": '{"method": "ngram", "num_speculative_tokens": 2}'},
    ],
)
def test_most_settings_are_read_after_the_fork(args: Mapping[str, str]) -> None:
    assert not why_cold(args, _CPU, "0.32.0")


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ({"enforce_eager": "false"}, "enforce_eager: it may compile"),
        ({"no-enforce-eager": ""}, "no_enforce_eager: it may compile"),
        ({"compilation_config": "3"}, "compilation_config: it may compile"),
        ({"mm-tensor-ipc": "torch_shm"}, "mm_tensor_ipc: it wants a queue"),
        ({"numa_bind": "true"}, "numa_bind: an engine's process is bound"),
        ({"pipeline_parallel_size": "2"}, "pipeline_parallel_size: nobody has tried"),
        ({"nnodes": "2"}, "nnodes: nobody has tried"),
        ({"distributed_executor_backend": "ray"}, "distributed_executor_backend: this executor"),
        ({"trust_remote_code": "true"}, "trust_remote_code: it runs code"),
        ({"ec_transfer_config": "{}"}, "ec_transfer_config: it runs code"),
    ],
)
def test_what_needs_a_process_that_is_started_for_it_is_told(
    args: Mapping[str, str], told: str
) -> None:
    assert why_cold(args, _CPU, "0.32.0").startswith(f"engine setting {told}")


def test_engines_of_a_gpu_compile_after_the_fork() -> None:
    assert not why_cold({"enforce_eager": "false", "compilation_config": "3"}, _GPU, "0.32.0")


def test_a_vllm_that_was_updated_meanwhile_is_not_what_the_pool_has() -> None:
    told = why_cold({}, _CPU, "0.33.0")
    assert told == "vLLM 0.33.0 is installed, the pool has imported 0.32.0"


def test_all_that_may_run_code_of_a_model_is_in_the_table() -> None:
    assert {rule.setting for rule in RULES} >= MODEL_CODE.keys()
