"""Shared prompts: what is asked, what is read off an answer, and how policies are shown."""

from __future__ import annotations

import json

import pytest

from penstock.evals.prefix_routing import (
    Asked,
    as_dict,
    as_markdown,
    body_of,
    engines_hit_rate,
    routed,
    system_prompt,
    usage_of,
)


def test_users_of_an_application_share_its_prompt_and_no_other() -> None:
    assert system_prompt(1) == system_prompt(1)
    assert system_prompt(1)[:40] != system_prompt(2)[:40]
    one, other = (body_of(1, question)["messages"] for question in (1, 2))
    assert isinstance(one, list)
    assert isinstance(other, list)
    assert one[0] == other[0]
    assert one[1] != other[1]


@pytest.mark.parametrize(("details", "cached"), [({"cached_tokens": 64}, 64), (None, 0)])
def test_usage_stands_in_the_last_event(details: object, cached: int) -> None:
    usage = {"prompt_tokens": 100, "prompt_tokens_details": details}
    last = json.dumps({"choices": [], "usage": usage})
    stream = f"data: {{}}\n\ndata: {last}\n\ndata: [DONE]\n\n"
    assert usage_of(stream.encode()) == (100, cached)


def test_hits_are_cached_tokens_over_prompt_tokens() -> None:
    asked = [Asked(100, 0, 30.0), Asked(300, 300, 10.0), Asked(200, 150, 20.0)]
    found = routed("prefix_aware", asked, engines=None)
    assert (found.requests, found.prompt_tokens, found.hit_rate) == (3, 200, 0.75)
    assert (found.first_token_p50_ms, found.first_token_p99_ms) == (20, 20)
    shown = as_markdown([found])
    assert "| `prefix_aware` | 3 | 75% | - | 20.0 ms | 20.0 ms |" in shown
    assert as_dict([found])[0]["hit_rate"] == 0.75


def test_the_engines_hits_are_those_of_both_between_two_pages() -> None:
    before = 'vllm:prefix_cache_queries_total{replica="a"} 10\n'
    after = (
        'vllm:prefix_cache_queries_total{replica="a"} 60\n'
        'vllm:prefix_cache_queries_total{replica="b"} 50\n'
        'vllm:prefix_cache_hits_total{replica="b"} 25\n'
    )
    assert engines_hit_rate(before, after) == 0.25
    assert engines_hit_rate(after, after) is None
