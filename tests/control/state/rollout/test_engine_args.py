"""Engine arguments that run code are known, and those that no engine takes are refused early."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

from penstock.control.errors import InvalidSpec
from penstock.control.state.rollout.engine_args import (
    SIMULATED_ARGS,
    check_engine_args,
    runs_model_code,
)
from penstock.control.state.rollout.template import Template
from penstock.replica.simulated.engine import SimulatedSettings
from penstock.replica.vllm.start.arguments import MODEL_CODE


def template(key: str, value: str, engine: str = "vllm") -> Template:
    return Template(engine=engine, model="m", engine_args=((key, value),))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("trust_remote_code", "true"),
        ("trust-remote-code", "1"),
        ("Trust_Remote_Code", "True"),
        ("trust_remote_code", "false "),
        ("trust_remote_code", ""),
        ("logits_processors", "mine:Processor"),
        ("worker_cls", "mine.Worker"),
        ("tool_parser_plugin", "/tmp/x.py"),
        ("distributed_executor_backend", "mine.Executor"),
        ("kv_transfer_config", '{"kv_connector": "X", "kv_connector_module_path": "mine"}'),
        ("kv_transfer_config.kv_connector_module_path", "mine"),
        ("compilation_config", '{"backend": "mine.compile"}'),
    ],
)
def test_arguments_that_run_code_are_known(key: str, value: str) -> None:
    assert runs_model_code(template(key, value))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("trust_remote_code", "false"),
        ("trust_remote_code", "0"),
        ("max_model_len", "2048"),
        ("distributed_executor_backend", "mp"),
        ("speculative_config", '{"method": "ngram", "num_speculative_tokens": 4}'),
        ("additional_config", '{"level": 3, "share": 0.5}'),
    ],
)
def test_arguments_that_run_the_engines_own_code_are_free(key: str, value: str) -> None:
    assert not runs_model_code(template(key, value))


@pytest.mark.parametrize("key", sorted(MODEL_CODE))
@pytest.mark.parametrize(
    "value",
    ["", "1", "true", "TRUE", "x", "a.b", "custom_class", "trust_remote_code", "module_path"],
)
def test_whatever_a_replica_takes_for_code_of_a_model_is_known_here(key: str, value: str) -> None:
    if re.search(MODEL_CODE[key], value):
        assert runs_model_code(template(key, value))


def test_the_simulated_engines_settings_are_those_that_it_has() -> None:
    assert set(SIMULATED_ARGS) == {field.name for field in fields(SimulatedSettings)}


@pytest.mark.parametrize(("key", "value"), [("token_per_second", "5"), ("ttft_ms", "x")])
def test_what_the_simulated_engine_refuses_is_refused_at_once(key: str, value: str) -> None:
    with pytest.raises(InvalidSpec, match=key):
        check_engine_args(template(key, value, engine="simulated"))


@pytest.mark.parametrize(
    "key",
    ["max_model_len", "max-model-len", "cpu_threads", "engine_hung_after", "trust_remote_code"],
)
def test_a_setting_that_vllm_has_is_taken_whatever_its_value(key: str) -> None:
    check_engine_args(template(key, "for vLLM to judge"))


@pytest.mark.parametrize(
    ("key", "named"),
    [
        ("max_model_length", "max_model_len"),
        ("Max-Num-Seqs", "max_num_seqs"),
        ("enable_loras", "enable_lora"),
        ("xyzzy", "vllm serve --help=all"),
        ("port", "the replica sets this itself"),
        ("kv_transfer_config.kv_connector", "kv_transfer_config"),
    ],
)
def test_a_setting_that_vllm_has_not_is_refused_with_the_nearest_that_it_has(
    key: str, named: str
) -> None:
    with pytest.raises(InvalidSpec) as refused:
        check_engine_args(template(key, "1"))
    assert key.replace("-", "_") in str(refused.value)
    assert named in str(refused.value)


@pytest.mark.parametrize(("untested", "taken"), [("true", True), ("", True), ("False", False)])
def test_a_vllm_that_nobody_has_looked_at_may_have_others(*, untested: str, taken: bool) -> None:
    args = (("brand_new", "1"), ("untested_vllm", untested))
    spec = Template(engine="vllm", model="m", engine_args=args)
    if taken:
        check_engine_args(spec)
    else:
        with pytest.raises(InvalidSpec, match="brand_new"):
            check_engine_args(spec)
