"""What of a request goes to a provider: what is on its list, and nothing that nobody thought of."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from penstock.replica.providers.converse_request import converse_request
from penstock.replica.providers.openai_requests import outgoing
from penstock.replica.providers.provider_engine import ProviderEngine
from penstock.replica.providers.requests import CHAT, COMPLETIONS, EMBEDDINGS, RESPONSES
from penstock.replica.providers.settings import Allowed
from penstock.replica.providers.values import Ask, ProviderFailed
from penstock.replica.values import Call, CannotLoad
from tests.fakes import bedrock_server as bedrock
from tests.fakes.openai_server import MODEL
from tests.fakes.provider_calls import asked, chat, end_of, provider_engine
from tests.fakes.provider_server import ProviderServer

_HI = [{"role": "user", "content": "Hi"}]
_FUNCTION = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
_BODIES: dict[str, dict[str, Any]] = {
    CHAT: {"messages": _HI},
    COMPLETIONS: {"prompt": "Hi"},
    EMBEDDINGS: {"input": "Hi"},
    RESPONSES: {"input": "Hi"},
}


def _ask(path: str, **fields: Any) -> Ask:
    return Ask(Call("r", path, b"", "ours"), {"model": "ours", **_BODIES[path], **fields}, 1)


def _openai(path: str = CHAT, *features: str, openai: bool = True, **fields: Any) -> dict[str, Any]:
    return outgoing(_ask(path, **fields), MODEL, Allowed(frozenset(features)), openai=openai)


def _bedrock(*features: str, **fields: Any) -> dict[str, Any]:
    return converse_request(_ask(CHAT, **fields), "m", ("", ""), Allowed(frozenset(features)))


def _refused(make: Any, *given: Any, **fields: Any) -> str:
    """The field that is named by a refusal which has a ladder go on."""
    with pytest.raises(ProviderFailed) as caught:
        make(*given, **fields)
    failed = caught.value.failed
    assert (failed.status, failed.code, failed.fault) == (400, "unsupported_parameter", "client")
    assert failed.param in failed.message
    return failed.param


_ENGINES_OWN: list[tuple[str, Any]] = [
    ("structured_outputs", {"choice": ["a"]}),
    ("guided_json", {"type": "object"}),
    ("min_tokens", 5),
    ("stop_token_ids", [1]),
    ("continue_final_message", True),
    ("modalities", ["text", "audio"]),
    ("chat_template_kwargs", {"enable_thinking": False}),
    ("vllm_xargs", {"a": 1}),
    ("a_field_of_next_year", 0),
]


@pytest.mark.parametrize(("field", "value"), _ENGINES_OWN)
def test_what_would_make_another_answer_is_refused_by_name(field: str, value: Any) -> None:
    assert _refused(_bedrock, **{field: value}) == field
    for path in _BODIES:
        assert _refused(_openai, path, **{field: value}) == field


@pytest.mark.parametrize(
    ("field", "value"),
    [("repetition_penalty", 1.2), ("min_p", 0.1), ("n", 2), ("logprobs", True), ("functions", [1])],
)
def test_bedrock_has_less(field: str, value: Any) -> None:
    assert _refused(_bedrock, **{field: value}) == field


def test_calls_one_by_one_are_refused_only_where_there_are_tools_to_call() -> None:
    assert _refused(_bedrock, parallel_tool_calls=False, tools=[_FUNCTION]) == "parallel_tool_calls"
    assert _bedrock(parallel_tool_calls=False) == _bedrock()


def test_what_says_nothing_is_no_reason_to_refuse() -> None:
    silent: dict[str, Any] = {field: None for field, _ in _ENGINES_OWN}
    silent |= {"functions": [], "function_call": "none", "n": 1, "min_tokens": 0, "top_k": -1}
    silent |= {
        "modalities": ["text"],
        "skip_special_tokens": True,
        "logit_bias": {},
        "seed": 7,
        "ignore_eos": True,
    }
    silent |= {"repetition_penalty": 1.0, "min_p": 0, "parallel_tool_calls": True, "user": "u"}
    del silent["top_k"]
    assert _bedrock(**silent) == _bedrock()
    assert _openai(openai=True, **silent)["messages"] == _HI


def test_only_openai_gets_what_it_alone_takes_and_others_what_it_does_not() -> None:
    assert _refused(_openai, CHAT, top_k=3) == "top_k"
    assert _openai(CHAT, openai=False, top_k=3)["top_k"] == 3
    assert _openai(CHAT, verbosity="low")["verbosity"] == "low"
    assert _refused(_openai, CHAT, openai=False, verbosity="low") == "verbosity"


_REACHES_FURTHER: list[tuple[str, str, dict[str, Any], str]] = [
    (CHAT, "web_search", {"web_search_options": {"x": 1}}, "web_search_options"),
    (RESPONSES, "web_search", {"tools": [{"type": "web_search"}]}, "tools[0].type"),
    (
        RESPONSES,
        "hosted_tools",
        {"tools": [{"type": "mcp", "server_url": "https://x.example"}]},
        "tools[0].type",
    ),
    (CHAT, "hosted_tools", {"tools": [{"type": "web_search_20250305"}]}, "tools[0].type"),
    (RESPONSES, "hosted_tools", {"input": [{"type": "mcp_call", "id": "x"}]}, "input[0].type"),
    (RESPONSES, "stored_objects", {"prompt": {"id": "pmpt_1"}}, "prompt"),
    (
        RESPONSES,
        "stored_objects",
        {"input": [{"type": "item_reference", "id": "msg_1"}]},
        "input[0].id",
    ),
    (
        RESPONSES,
        "stored_objects",
        {
            "input": [
                {
                    "type": "message",
                    "role": "user",
                    "content": [{"type": "input_file", "file_id": "f"}],
                }
            ]
        },
        "input[0].content[0].file_id",
    ),
    (
        CHAT,
        "stored_objects",
        {"messages": [{"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]}]},
        "messages[0].content[0].file.file_id",
    ),
    (
        CHAT,
        "stored_objects",
        {"messages": [{"role": "assistant", "audio": {"id": "audio_1"}}]},
        "messages[0].audio",
    ),
    (CHAT, "field:prediction", {"prediction": {"type": "content"}}, "prediction"),
]


@pytest.mark.parametrize(("path", "feature", "fields", "named"), _REACHES_FURTHER)
def test_what_costs_or_reaches_more_than_the_model_has_to_be_allowed(
    path: str, feature: str, fields: dict[str, Any], named: str
) -> None:
    assert _refused(_openai, path, **fields) == named
    assert _openai(path, feature, **fields).items() >= fields.items()


@pytest.mark.parametrize(
    ("feature", "field", "value"),
    [
        ("thinking", "thinking", {"type": "enabled", "budget_tokens": 2000}),
        ("model_fields", "additionalModelRequestFields", {"anthropic_beta": ["x"]}),
    ],
)
def test_bedrocks_own_fields_have_to_be_allowed(feature: str, field: str, value: Any) -> None:
    assert _refused(_bedrock, **{field: value}) == field
    more = _bedrock(feature, **{field: value})["additionalModelRequestFields"]
    assert more in ({field: value}, value)


def test_nothing_is_kept_at_the_provider_unless_that_is_allowed() -> None:
    for path in (CHAT, RESPONSES):
        assert _openai(path, store=True)["store"] is False
        assert _openai(path, "store", store=True)["store"] is True
        assert _openai(path, "store")["store"] is False


def test_choices_are_bounded() -> None:
    assert _openai(n=8.0)["n"] == 8
    assert _refused(_openai, n=9) == "n"
    assert outgoing(_ask(CHAT, n=9), MODEL, Allowed(most_choices=9), openai=True)["n"] == 9


def test_a_tier_has_to_have_a_price() -> None:
    tiers = Allowed(tiers={"flex": Decimal("0.5")})
    for tier in ("flex", "priority", 1, ["flex"]):
        assert _refused(_openai, service_tier=tier) == "service_tier"
        assert _refused(_bedrock, service_tier=tier) == "service_tier"
    flex = _ask(CHAT, service_tier="flex")
    assert outgoing(flex, MODEL, tiers, openai=True)["service_tier"] == "flex"
    assert converse_request(flex, "m", ("", ""), tiers)["serviceTier"] == {"type": "flex"}
    assert "serviceTier" not in _bedrock(service_tier="auto")


async def test_a_tier_costs_its_factor(bedrock_server: ProviderServer, aws: object) -> None:
    prices = ("usd_per_million_input=3", "usd_per_million_output=15", "service_tiers=flex:0.5")
    settings = bedrock.settings(bedrock_server, *prices)
    async with provider_engine("bedrock", bedrock.MODEL, *settings) as engine:
        usual = end_of(await asked(engine, chat(max_tokens=2))).cost_nanousd
        flex = end_of(await asked(engine, chat(max_tokens=2, service_tier="flex"))).cost_nanousd
    assert flex == usual / 2 > 0


async def test_what_is_written_to_a_cache_has_its_own_price(
    bedrock_engine: ProviderEngine, bedrock_server: ProviderServer
) -> None:
    details = [{"inputTokens": 1000, "ttl": "1h"}, {"inputTokens": 9000, "ttl": "5m"}]
    usage: dict[str, Any] = {"inputTokens": 5, "outputTokens": 2, "totalTokens": 10007}
    usage |= {"cacheReadInputTokens": 0, "cacheWriteInputTokens": 10_000, "cacheDetails": details}
    answer = bedrock.unary([{"text": "Hi"}], "end_turn", usage)
    bedrock_server.next.append(answer)
    end = end_of(await asked(bedrock_engine, chat()))
    assert end.prompt_tokens == 10_005
    assert end.cost_nanousd == 5 * 3000 + 1000 * 6000 + 9000 * 3750 + 2 * 15000
    bedrock_server.next.append(answer)
    priced = replace(chat(), input_price=4 * 10**9, output_price=20 * 10**9)
    end = end_of(await asked(bedrock_engine, priced))
    assert end.cost_nanousd == 5 * 4000 + 1000 * 8000 + 9000 * 5000 + 2 * 20000, "of the call"


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("provider_features=web_serch", "'web_serch'"),
        ("provider_features=field:a b", "'field:a b'"),
        ("service_tiers=flex", "'flex'"),
        ("service_tiers=flex:0", "'flex:0'"),
        ("max_choices=0", "max_choices is '0'"),
    ],
)
async def test_what_is_allowed_is_checked_at_the_start(setting: str, named: str) -> None:
    with pytest.raises(CannotLoad, match=named):
        async with provider_engine("canned", "m", "text=Hi", setting):
            pass
