"""Engine settings to vLLM's command line."""

from __future__ import annotations

import pytest

from penstock.replica.values import CannotLoad
from penstock.replica.vllm.start.arguments import (
    UNIPROC,
    Circumstances,
    Option,
    check_early,
    command_line,
)

_VALUES = [
    "otlp_traces_endpoint",
    "scheduling_policy",
    "worker_extension_cls",
    "max_num_seqs",
    "runner",
    "long_prefill_token_threshold",
    "max_num_batched_tokens",
    "max_model_len",
    "kv_cache_memory_bytes",
    "distributed_executor_backend",
    "tensor_parallel_size",
    "max_loras",
    "max_cpu_loras",
    "max_lora_rank",
    "dtype",
]
_PAIRS = [
    "long_prefill_token_threshold_adaptive",
    "enforce_eager",
    "enable_lora",
    "enable_sleep_mode",
    "enable_prompt_tokens_details",
    "use_tqdm_on_load",
]
OPTIONS = (
    {name: Option("--" + name.replace("_", "-"), "value") for name in _VALUES}
    | {name: Option("--" + name.replace("_", "-"), "pair") for name in _PAIRS}
    | {
        "disable_log_stats": Option("--disable-log-stats", "switch"),
        "allowed_media_domains": Option("--allowed-media-domains", "list"),
        "port": Option("--port", "value"),
    }
)
CPU = Circumstances(cpu=True)
WRITES = Circumstances(cpu=True, writes=True)
CUDA = Circumstances(cpu=False)


def _line(circumstances: Circumstances = CPU, **engine_args: str) -> list[str]:
    return command_line(engine_args, OPTIONS, circumstances)


def test_a_cpu_engine_runs_eagerly_in_one_process_with_a_gibibyte_of_cache() -> None:
    line = _line()
    assert "--enforce-eager" in line
    assert f"--distributed-executor-backend={UNIPROC}" in line
    assert "--kv-cache-memory-bytes=1073741824" in line


def test_a_cuda_engine_gets_nothing_that_is_meant_for_cpus() -> None:
    line = " ".join(_line(CUDA))
    for flag in ("enforce-eager", "kv-cache-memory", "executor-backend", "max-num-seqs"):
        assert flag not in line


def test_spans_go_where_the_replicas_environment_says_unless_its_settings_say_otherwise() -> None:
    assert not [word for word in _line() if "otlp" in word]
    traced = Circumstances(cpu=True, traces="http://c/v1/traces")
    assert "--otlp-traces-endpoint=http://c/v1/traces" in _line(traced)
    assert "--otlp-traces-endpoint=http://d" in _line(traced, otlp_traces_endpoint="http://d")


def test_sleep_mode_is_asked_for_where_there_is_one() -> None:
    assert "--enable-sleep-mode" in _line(Circumstances(cpu=False, sleeps=True))
    for others in (CUDA, Circumstances(cpu=True, sleeps=True)):
        assert "--enable-sleep-mode" not in _line(others)


def test_what_the_deployment_says_goes_over_the_defaults() -> None:
    line = _line(max_num_seqs="8", enforce_eager="false", cpu_kvcache_gib="0.5")
    assert "--max-num-seqs=8" in line
    assert "--no-enforce-eager" in line
    assert "--kv-cache-memory-bytes=536870912" in line


def test_no_media_is_fetched_unless_a_deployment_says_from_where() -> None:
    line = command_line({}, OPTIONS, CPU)
    (domain,) = [word for word in line if "allowed_media_domains" in word]
    assert domain.endswith(".invalid")


def test_dashes_and_lists_are_understood() -> None:
    line = command_line({"max-num-seqs": "9", "allowed_media_domains": "a b"}, OPTIONS, CPU)
    assert "--max-num-seqs=9" in line
    first = line.index("--allowed-media-domains")
    assert line[first + 1 : first + 3] == ["a", "b"]


def test_several_workers_get_vllms_own_executor() -> None:
    assert UNIPROC not in " ".join(_line(tensor_parallel_size="2"))


def test_one_adapter_slot_stays_empty_on_a_cpu() -> None:
    line = _line(Circumstances(cpu=True, adapter_slots=2, adapter_rank=20))
    assert "--max-loras=3" in line
    assert "--max-lora-rank=32" in line
    assert "--max-loras=2" in _line(Circumstances(cpu=False, adapter_slots=2))


@pytest.mark.parametrize(("rank", "taken"), [(0, 16), (1, 1), (2, 8), (65, 128), (512, 512)])
def test_the_rank_is_the_smallest_that_vllm_knows_and_that_suffices(rank: int, taken: int) -> None:
    line = _line(Circumstances(cpu=True, adapter_slots=1, adapter_rank=rank))
    assert f"--max-lora-rank={taken}" in line


def test_lora_without_a_number_has_four_slots() -> None:
    assert "--max-loras=5" in _line(enable_lora="true")


def test_without_adapters_there_is_no_lora() -> None:
    assert "--enable-lora" not in _line()


def test_what_a_model_brings_gives_way_to_what_the_deployment_says() -> None:
    brought = {"max_num_seqs": "7", "dtype": "half"}
    circumstances = Circumstances(cpu=True, brought=brought)
    assert {"--max-num-seqs=7", "--dtype=half"} <= set(_line(circumstances))
    line = _line(circumstances, **{"max-num-seqs": "9"})
    assert "--max-num-seqs=9" in line
    assert "--max-num-seqs=7" not in line


def test_a_very_long_context_is_cut_to_what_a_cpus_cache_holds() -> None:
    assert "--max-model-len=8192" in _line(Circumstances(cpu=True, longest=131072))
    assert not [w for w in _line(Circumstances(cpu=True, longest=4096)) if "len" in w]


def test_steps_are_short_on_a_cpu_where_a_prompt_can_take_several() -> None:
    def tokens(circumstances: Circumstances, **settings: str) -> list[str]:
        return [w for w in _line(circumstances, **settings) if "batched" in w]

    assert tokens(WRITES) == ["--max-num-batched-tokens=512"]
    assert tokens(WRITES, max_num_seqs="1024") == ["--max-num-batched-tokens=1024"]
    assert tokens(WRITES, max_num_batched_tokens="4096") == ["--max-num-batched-tokens=4096"]
    assert not tokens(WRITES, runner="pooling")
    assert not tokens(CPU)
    assert not tokens(Circumstances(cpu=False, writes=True))


def test_a_long_prompt_leaves_room_in_a_step_to_others_where_the_model_takes_long_ones() -> None:
    def shares(**settings: str) -> list[str]:
        return [w for w in _line(WRITES, **settings) if "prefill" in w]

    both = ["--long-prefill-token-threshold=128", "--long-prefill-token-threshold-adaptive"]
    assert shares() == shares(max_model_len="4k") == both
    assert not shares(max_model_len="64")  # vLLM takes no share that is longer


@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        ("port", "80", "the replica sets this itself"),
        ("model", "x", "the replica sets this itself"),
        ("max_modellen", "80", "no flag --max-modellen"),
        ("enforce_eager", "maybe", "say true or false"),
        ("cpu_kvcache_gib", "much", "say a number"),
        ("cpu_threads", "-1", "say a number"),
        ("allowed_media_domains", "a --trust-remote-code", "no word may begin with a dash"),
    ],
)
def test_a_setting_that_cannot_be_is_named(setting: str, value: str, words: str) -> None:
    with pytest.raises(CannotLoad, match=words) as caught:
        _line(CPU, **{setting: value})
    assert setting in str(caught.value)


_CODE = {
    "trust_remote_code": "true",
    "trust-remote-code": "",
    "logits_processors": "my.module:Processor",
    "tool_parser_plugin": "/tmp/plugin.py",
    "worker_cls": "my.Worker",
    "speculative_config": '{"method": "custom_class", "model": "my.Proposer"}',
    "distributed_executor_backend": "my.module.Executor",
    "ec_transfer_config": '{"ec_connector_module_path": "my.module"}',
    "speculative-config": r'{"trust\u005fremote_code": true}',
    "structured_outputs_config": '{"reasoning_parser_plugin": "/tmp/plugin.py"}',
}


@pytest.mark.parametrize("key", _CODE)
def test_flags_that_run_a_models_code_need_leave(key: str) -> None:
    with pytest.raises(CannotLoad, match="--allow-model-code"):
        check_early({key: _CODE[key]}, allow_model_code=False)
    check_early({key: _CODE[key]}, allow_model_code=True)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("trust_remote_code", "false"),
        ("speculative_config", '{"method": "ngram", "num_speculative_tokens": 3}'),
        ("distributed_executor_backend", "mp"),
        ("max_model_len", "2048"),
    ],
)
def test_flags_that_run_none_need_none(key: str, value: str) -> None:
    check_early({key: value}, allow_model_code=False)


@pytest.mark.parametrize(
    "engine_args", [{"port": "1"}, {"cpu_threads": "many"}, {"untested_vllm": "perhaps"}]
)
def test_what_is_wrong_without_vllm_is_told_before_it_is_imported(
    engine_args: dict[str, str],
) -> None:
    with pytest.raises(CannotLoad, match=next(iter(engine_args))):
        check_early(engine_args, allow_model_code=True)
