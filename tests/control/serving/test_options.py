"""What users write after `penstock serve`, and what becomes of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.adapters.adapter import AdapterRef
from penstock.control.errors import Code
from penstock.control.serving.options import (
    DEFAULT_ADAPTERS,
    Adapter,
    ServeOptions,
    adapters_of,
    deployment_name,
    parse_adapter,
    parse_engine_args,
    resolve_model,
)
from penstock.control.settings import reachable
from penstock.control.state.rollout.deployment import DeploymentName, DeploymentSpec
from penstock.control.state.rollout.template import Template
from tests.fakes.control_errors import raises_code


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("penstock-mini", "penstock-mini"),
        ("Qwen/Qwen2.5-0.5B-Instruct", "qwen2.5-0.5b-instruct"),
        ("/models/My Model (v2)/", "my-model-v2"),
        ("/", "model"),
        ("öäü", "model"),
    ],
)
def test_a_deployment_is_named_after_its_model(model: str, name: str) -> None:
    assert deployment_name(model) == name


@given(st.text())
def test_every_model_gives_a_name_that_the_head_accepts(model: str) -> None:
    name = DeploymentName(deployment_name(model))
    assert DeploymentSpec(name, Template("vllm", "m")).name == name


def test_engine_settings_come_from_both_forms_and_the_repeated_one_wins() -> None:
    parsed = parse_engine_args(["a=3", "--dtype=half"], 'a=1 b=2 c="x y"')
    assert parsed == {"a": "3", "b": "2", "c": "x y", "dtype": "half"}


def test_a_setting_may_hold_an_equals_sign() -> None:
    assert parse_engine_args(["overrides={x=1}"]) == {"overrides": "{x=1}"}


@pytest.mark.parametrize(("settings", "one_string"), [(["oops"], ""), (["=1"], ""), ([], "a='")])
def test_a_setting_that_is_none_is_refused(settings: list[str], one_string: str) -> None:
    with raises_code(Code.INVALID_SETTING, match=r"oops|=1|a='"):
        parse_engine_args(settings, one_string)


@pytest.mark.parametrize("text", DEFAULT_ADAPTERS)
def test_the_default_adapters_are_well_formed(text: str) -> None:
    adapter = parse_adapter(text)
    assert str(AdapterRef.parse(adapter.name)) == adapter.name
    assert adapter.source.startswith("penstock-mini/")


def test_the_default_model_brings_its_adapters_and_other_models_bring_none() -> None:
    assert [each.alias for each in adapters_of("penstock-mini", None)] == ["pirate", "json"]
    assert all(each.comes_along for each in adapters_of("penstock-mini", None))
    assert adapters_of("other", None) == ()
    assert adapters_of("penstock-mini", []) == ()
    assert adapters_of("other", ["sql=sql@2=/lora"]) == (Adapter("sql", "sql@2", "/lora"),)


@pytest.mark.parametrize(("named", "said", "slots"), [(0, 0, 0), (2, 0, 4), (6, 0, 6), (2, 3, 3)])
def test_there_is_room_for_all_adapters_that_are_named(named: int, said: int, slots: int) -> None:
    adapters = tuple(Adapter(f"a{i}", f"a{i}@1", "/x") for i in range(named))
    options = ServeOptions("m", "mini", Path("/d"), adapters=adapters, max_adapters=said)
    assert options.adapter_slots == slots


def test_an_adapter_directory_becomes_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lora").mkdir()
    monkeypatch.chdir(tmp_path)
    assert parse_adapter("sql=sql@2=lora") == Adapter("sql", "sql@2", str(tmp_path / "lora"))


@pytest.mark.parametrize("text", ["", "pirate", "pirate=pirate", "pirate=pirate@1", "=a@1=x"])
def test_an_incomplete_adapter_is_refused_with_an_example(text: str) -> None:
    with raises_code(Code.INVALID_SETTING, match=r"alias=name@version=SOURCE.*such as"):
        parse_adapter(text)


def test_a_model_directory_becomes_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "weights").mkdir()
    monkeypatch.chdir(tmp_path)
    assert resolve_model("weights") == str(tmp_path / "weights")


@pytest.mark.parametrize("model", ["penstock-mini", "Qwen/Qwen2.5-0.5B-Instruct"])
def test_names_and_hub_ids_are_left_as_they_are(model: str) -> None:
    assert resolve_model(model) == model


@pytest.mark.parametrize("model", ["./nowhere", "/nowhere", "~/nowhere-at-all", "a/b/c"])
def test_a_path_that_is_not_there_is_refused(model: str) -> None:
    with raises_code(Code.INVALID_SETTING, match=re.escape(model)):
        resolve_model(model)


def test_a_file_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").touch()
    with raises_code(Code.INVALID_SETTING, match="is a file"):
        resolve_model(str(tmp_path / "model.gguf"))


@pytest.mark.parametrize(
    ("address", "seen"),
    [("0.0.0.0:80", "127.0.0.1:80"), ("[::]:80", "127.0.0.1:80"), ("10.1.2.3:80", "10.1.2.3:80")],
)
def test_an_address_of_every_interface_is_reached_over_the_loopback(
    address: str, seen: str
) -> None:
    assert reachable(address, flag="--gateway") == seen


def test_clients_may_name_the_deployment_and_each_adapter() -> None:
    adapters = (Adapter("pirate", "pirate@1", "x"), Adapter("json", "json@1", "y"))
    options = ServeOptions("m", "mini", Path("/data"), adapters=adapters, gateway="0.0.0.0:8080")
    assert options.model_names == ["mini", "mini:pirate", "mini:json"]
    assert options.gateway_url == "http://127.0.0.1:8080"


@pytest.mark.parametrize("name", ["a?b", "a/b", "", "A", "-a", "a" * 64])
def test_a_name_that_no_deployment_can_have_is_refused_at_once(name: str) -> None:
    with raises_code(Code.INVALID_SETTING, match="--name is "):
        ServeOptions("m", name, Path("/data"))
