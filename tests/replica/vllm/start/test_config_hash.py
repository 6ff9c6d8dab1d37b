"""What of an engine decides whether another may go on with its answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.control.state.rollout.vllm_settings import KNOWN
from penstock.replica.vllm.start.config_hash import (
    NOT_OF_ANSWERS,
    config_hash,
    held_by,
    of_answers,
    of_device,
    of_environment,
)
from penstock.replica.vllm.start.facts import model_version

# As Linux tells of a machine of 2023 and of one of 2019.
SAPPHIRE_RAPIDS = "processor\t: 0\nflags\t\t: fpu amx_bf16 amx_tile avx2 avx512f avx512_bf16 ht\n"
CASCADE_LAKE = "processor\t: 0\nflags\t\t: fpu avx2 avx512f avx512_vnni ht\n"


def test_settings_have_no_order() -> None:
    assert config_hash({"a": 1, "b": 2}) == config_hash({"b": 2, "a": 1})
    assert config_hash({"a": 1}) != config_hash({"a": 2})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("max_num_seqs", "7"),
        ("max-num-batched-tokens", "4096"),
        ("gpu_memory_utilization", "0.7"),
        ("cpu-kvcache-gib", "2"),
        ("max_loras", "4"),
        ("device_ids", "1"),
        ("cpu_threads", "3"),
        ("otlp_traces_endpoint", "http://traces:4317"),
        ("enable_log_deltas", "true"),
        ("shutdown_timeout", "9"),
    ],
)
def test_settings_that_change_no_answer_are_not_in_it(key: str, value: str) -> None:
    assert of_answers({key: value}) == {}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("dtype", "float16"),
        ("block_size", "64"),
        ("enable_prefix_caching", "false"),
        ("enable_per_request_metrics", "true"),
        ("quantization", "fp8"),
        ("kv_cache_dtype", "fp8"),
        ("tensor_parallel_size", "2"),
        ("attention_backend", "FLASHINFER"),
        ("enforce_eager", "true"),
        ("compilation_config", '{"level": 0}'),
        ("max_model_len", "2048"),
        ("chat_template", "{{ messages }}"),
        ("chat_template_content_format", "openai"),
        ("default_chat_template_kwargs", '{"enable_thinking": false}'),
        ("tool_call_parser", "hermes"),
        ("enable_auto_tool_choice", "true"),
        ("reasoning_parser", "qwen3"),
        ("generation_config", "vllm"),
        ("override_generation_config", '{"temperature": 0.5}'),
        ("structured_outputs_config", '{"backend": "guidance"}'),
        ("speculative_config", '{"method": "ngram"}'),
        ("logprobs_mode", "processed_logprobs"),
        ("tokenizer", "another"),
        ("hf_overrides", '{"rope_theta": 1}'),
        ("stream_interval", "8"),
        ("seed", "7"),
        ("a_setting_of_a_later_version", "1"),
    ],
)
def test_all_others_are(key: str, value: str) -> None:
    assert of_answers({key: value}) == {key: value}
    assert of_answers({key.replace("_", "-"): value}) == {key: value}


def test_what_is_left_out_is_a_setting_that_there_is() -> None:
    assert set(KNOWN) >= NOT_OF_ANSWERS


def test_a_template_counts_by_what_its_file_holds_wherever_it_lies(tmp_path: Path) -> None:
    here, there = tmp_path / "a.jinja", tmp_path / "b.jinja"
    here.write_text("{{ messages }}")
    there.write_text("{{ messages }}")
    before = of_answers({"chat_template": str(here)})
    assert before == of_answers({"chat-template": str(there)})
    here.write_text("{{ messages }}!")
    assert of_answers({"chat_template": str(here)}) != before


def test_a_directory_counts_by_what_decides_answers_in_it(tmp_path: Path) -> None:
    (tmp_path / "generation_config.json").write_text('{"temperature": 1}')
    before = held_by(str(tmp_path))
    (tmp_path / "README.md").write_text("about it")
    assert held_by(str(tmp_path)) == before
    (tmp_path / "generation_config.json").write_text('{"temperature": 0.6}')
    assert held_by(str(tmp_path)) != before


@pytest.mark.parametrize("said", ["", "auto", "{{ " + "x" * 9000, "no\0name"])
def test_what_names_no_file_is_itself(said: str) -> None:
    assert held_by(said) == said


@pytest.mark.parametrize(
    "name",
    [
        *("generation_config.json", "tokenizer.json", "chat_template.jinja", "merges.txt"),
        *("processor_config.json", "modeling_mine.py", "additional_chat_templates/tools.jinja"),
    ],
)
def test_what_lies_beside_the_weights_counts(tmp_path: Path, name: str) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(bytes(100))
    before = model_version(tmp_path)
    (tmp_path / "README.md").write_text("about it")
    assert model_version(tmp_path) == before
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("{}")
    assert model_version(tmp_path) != before


def test_variables_that_choose_kernels_count() -> None:
    chosen = {
        "VLLM_USE_FLASHINFER_SAMPLER": "1",
        "VLLM_BATCH_INVARIANT": "1",
        "NVIDIA_TF32_OVERRIDE": "0",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
    }
    assert of_environment(chosen) == chosen


def test_variables_of_places_times_logs_and_secrets_do_not() -> None:
    here = {
        "PATH": "/bin",
        "HOME": "/root",
        "CUDA_VISIBLE_DEVICES": "3",
        "VLLM_API_KEY": "secret",
        "VLLM_LOGGING_LEVEL": "INFO",
        "VLLM_LOGGING_CONFIG_PATH": "/tmp/penstock-vllm-x/log.json",
        "VLLM_HOST_IP": "10.0.0.7",
        "VLLM_PORT": "7777",
        "VLLM_CACHE_ROOT": "/var/cache",
        "VLLM_CPU_KVCACHE_SPACE": "4",
        "VLLM_CPU_OMP_THREADS_BIND": "0-3",
        "VLLM_ENGINE_READY_TIMEOUT_S": "60",
    }
    assert of_environment(here) == {}


def test_another_kind_of_device_counts_and_another_of_its_kind_does_not() -> None:
    assert of_device("NVIDIA H100 80GB HBM3", "") != of_device("NVIDIA H200", "")
    assert of_device("cpu", SAPPHIRE_RAPIDS) != of_device("cpu", CASCADE_LAKE)
    others = CASCADE_LAKE.replace("ht\n", "ht erms\n") + "model name\t: another stepping\n"
    assert of_device("cpu", CASCADE_LAKE) == of_device("cpu", others)
    assert of_device("cpu", "Features\t: asimd bf16\n") != of_device("cpu", "Features\t: asimd\n")
