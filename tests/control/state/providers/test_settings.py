"""What may be said of a managed provider: settings by name and kind, secrets by reference alone."""

from __future__ import annotations

import pytest

from penstock.control.errors import InvalidSpec
from penstock.control.state.providers.settings import (
    MANAGED,
    calls_tools,
    check_no_secrets,
    check_provider,
    settings_of,
)
from penstock.replica.providers.make import make_provider_engine
from penstock.replica.settings import parse_settings
from penstock.replica.values import CannotLoad

KEY = "sk-proj-4242424242424242"
FULL = {
    "bedrock": {
        "region": "eu-west-1",
        "profile": "ours",
        "role_arn": "arn:aws:iam::123456789012:role/bedrock",
        "endpoint_url": "https://vpce-1.bedrock-runtime.eu-west-1.vpce.amazonaws.com",
        "guardrail_id": "gr1",
        "guardrail_version": "DRAFT",
    },
    "openai": {
        "base_url": "http://127.0.0.1:9000/v1",
        "api_key_file": "keys/openai.key",
        "organization": "org-1",
        "headers_file": "openai.headers",
    },
    "canned": {"text": "Too busy: try again."},
}
COMMON = {
    "connect_timeout_ms": "5000",
    "first_event_timeout_ms": "60000",
    "between_events_timeout_ms": "1",
    "retries": "0",
    "usd_per_million_input": "0.15",
    "usd_per_million_output": "1.5e-07",
    "usd_per_million_cached": "0",
    "max_model_len": "128000",
    "tools": "false",
    "max_calls": "400",
    "answer_timeout_ms": "900000",
    "usd_per_million_cache_write": "3.75",
    "usd_per_million_cache_write_1h": "6",
    "provider_features": "web_search, field:prediction",
    "service_tiers": "flex:0.5,priority:2",
    "max_choices": "4",
}
OF_THE_MACHINE = ("profile", "role_arn", "api_key_file", "headers_file")
NEEDED = {"bedrock": {}, "openai": {"api_key_env": "OPENAI_API_KEY"}, "canned": {"text": "no"}}


def check(engine: str, **settings: str) -> None:
    check_provider(engine, tuple(sorted(settings.items())))


def refused(engine: str, **settings: str) -> str:
    with pytest.raises(InvalidSpec) as caught:
        check(engine, **settings)
    return str(caught.value)


def secret_refused(engine: str = "openai", model: str = "m", label: str = "x", **s: str) -> str:
    with pytest.raises(InvalidSpec) as caught:
        check_no_secrets(engine, model, tuple(s.items()), [("team", label)])
    return str(caught.value)


@pytest.mark.parametrize("engine", MANAGED)
def test_the_settings_of_a_provider_are_those_that_its_replica_knows(engine: str) -> None:
    """What both know, the replica takes; of what it does not know it says what it does."""
    words = "--replica-id r --deployment d --model m --engine"
    argv = [*words.split(), engine]
    own = {key: value for key, value in FULL[engine].items() if key not in OF_THE_MACHINE}
    for key, value in {**COMMON, **own, "xyzzy": "1"}.items():
        argv += ["--engine-arg", f"{key}={value}"]
    with pytest.raises(CannotLoad) as refused:
        make_provider_engine(parse_settings(argv))
    words = str(refused.value).partition("has no setting 'xyzzy': it knows ")[2]
    assert sorted(set(words.split(", "))) == list(settings_of(engine))


@pytest.mark.parametrize("engine", MANAGED)
def test_every_setting_of_a_provider_is_taken(engine: str) -> None:
    everything = {**COMMON, **FULL[engine]}
    check(engine, **everything)
    assert set(settings_of(engine)) == {*everything, *({"api_key_env"} & {*settings_of(engine)})}
    check(engine, **NEEDED[engine])
    check_no_secrets(engine, "m", tuple(everything.items()), [])


@pytest.mark.parametrize(
    ("engine", "key", "words"),
    [
        ("openai", "api-key-env", "near to it: api_key_env"),
        ("openai", "base_uri", "near to it: base_url"),
        ("bedrock", "regio", "near to it: region"),
        ("bedrock", "base_url", "the engine bedrock has no setting 'base_url'"),
        ("canned", "xyzzy", "it has answer_timeout_ms"),
    ],
)
def test_a_setting_that_a_provider_has_not_is_refused_with_the_nearest(
    engine: str, key: str, words: str
) -> None:
    assert words in refused(engine, **{**NEEDED[engine], key: "1"})


@pytest.mark.parametrize(
    ("engine", "key", "value"),
    [
        ("bedrock", "connect_timeout_ms", "0"),
        ("bedrock", "first_event_timeout_ms", "1.5"),
        ("bedrock", "between_events_timeout_ms", "soon"),
        ("bedrock", "retries", "11"),
        ("bedrock", "usd_per_million_input", "-1"),
        ("bedrock", "usd_per_million_output", "nan"),
        ("bedrock", "usd_per_million_cached", "1 dollar"),
        ("bedrock", "max_model_len", "-1"),
        ("bedrock", "tools", "yes"),
        ("bedrock", "max_calls", "0"),
        ("openai", "provider_features", "web_serch"),
        ("openai", "service_tiers", "flex"),
        ("openai", "service_tiers", "flex:0"),
        ("bedrock", "region", "Ireland"),
        ("bedrock", "profile", " "),
        ("bedrock", "role_arn", "bedrock"),
    ],
)
def test_a_value_of_another_kind_is_refused_by_name(engine: str, key: str, value: str) -> None:
    assert f"engine setting {key} is {value!r}: it must be" in refused(engine, **{key: value})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("api_key_env", "f00dfacec0ffee00f00dfacec0ffee00"),
        ("api_key_env", "openai key"),
        ("api_key_env", "AWS_SECRET_ACCESS_KEY"),
        ("api_key_env", "HF_TOKEN"),
        ("api_key_env", "PENSTOCK_KEY"),
        ("api_key_file", "/etc/openai.key"),
        ("api_key_file", "../openai.key"),
        ("api_key_file", "keys/../../openai.key"),
        ("api_key_file", ""),
        ("headers_file", "/headers"),
        ("base_url", "http://h/v1?key=4242"),
        ("base_url", "h:80"),
        ("base_url", "ftp://h/v1"),
    ],
)
def test_what_may_be_a_secret_in_the_wrong_place_is_refused_and_not_repeated(
    key: str, value: str
) -> None:
    said = refused("openai", **{"base_url": "http://h/v1", key: value})
    assert f"engine setting {key} must be" in said
    assert "not repeated" in said
    assert not value or value not in said


def test_openai_itself_needs_one_place_of_a_key_and_others_may_need_none() -> None:
    both = refused("openai", api_key_env="A", api_key_file="a")
    assert "api_key_env and api_key_file are both given" in both
    for settings in ({}, {"base_url": "https://api.openai.com/v1"}, {"organization": "o"}):
        assert "needs a key" in refused("openai", **settings)
    for settings in ({"base_url": "http://10.0.0.1/v1"}, {"headers_file": "h"}):
        check("openai", **settings)


def test_settings_that_need_each_other_are_refused_alone() -> None:
    assert "setting text" in refused("canned")
    for key in ("guardrail_id", "guardrail_version"):
        assert "go together" in refused("bedrock", **{key: "1"})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("api_key", "whatever"),
        ("api-key", "whatever"),
        ("apiKey", "whatever"),
        ("aws_secret_access_key", "whatever"),
        ("aws_session_token", "whatever"),
        ("AWS_ACCESS_KEY_ID", "whatever"),
        ("password", "whatever"),
        ("Authorization", "whatever"),
        ("organization", KEY),
        ("api_key_env", KEY),
        ("profile", "AKIAIOSFODNN7EXAMPLE"),
        ("base_url", "https://user:hunter22@h/v1"),
        ("base_url", "https://hunter22@h/v1"),
        ("text", f"use {KEY}"),
        ("text", "Bearer abcdefgh12345678"),
    ],
)
def test_a_secret_in_a_spec_is_refused_without_being_repeated(key: str, value: str) -> None:
    said = secret_refused(**{key: value})
    assert key in said
    assert "secret" in said
    assert "api_key_file" in said
    assert value not in said


def test_a_secret_is_refused_wherever_it_stands() -> None:
    for engine in MANAGED:
        assert KEY not in secret_refused(engine, KEY)
        assert KEY not in secret_refused(engine, label=KEY)
        assert KEY not in secret_refused(engine, **{KEY: ""})


@pytest.mark.parametrize(
    "text",
    ["risk-based answers", "gpt-4o-mini", "eu.anthropic.claude-sonnet-4-5-v1:0", "ask@example.com"],
)
def test_what_is_no_secret_is_taken(text: str) -> None:
    check_no_secrets("canned", text, (("text", text),), [("team", text)])


def test_engines_of_ours_are_not_looked_at() -> None:
    check_no_secrets("vllm", "m", (("hf_token", "hf_abcdefghijklmnopqrst"),), [])


def test_only_texts_and_providers_that_are_told_so_call_no_tools() -> None:
    assert not calls_tools("canned", ())
    assert calls_tools("canned", (("tools", "true"),))
    assert calls_tools("openai", ())
    assert calls_tools("openai", (("tools", "true"),))
    assert not calls_tools("openai", (("tools", "false"),))
    assert calls_tools("vllm", (("tools", "false"),))
