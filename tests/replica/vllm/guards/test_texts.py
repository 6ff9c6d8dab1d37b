"""How much text one request may bring: no field of it takes the bound off."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.replica.vllm.endpoints import ENDPOINTS
from penstock.replica.vllm.guards.costs import NotOffered
from penstock.replica.vllm.guards.texts import MAX_CUT, MAX_PAIRED, MAX_TEXT, check

_CONTEXT = 4096
_LONG = "a" * (MAX_CUT + 1)
_HUGE = "a" * (MAX_TEXT + 1)


def _said(text: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [{"type": "text", "text": text}]}]


def _shown(data: str) -> list[dict[str, Any]]:
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
    return [{"role": "user", "content": [image]}]


def _check(path: str, fields: dict[str, Any], context: int = _CONTEXT) -> None:
    request = type("Request", (), fields | {"model_fields": fields})()
    check(request, json.dumps(fields).encode(), ENDPOINTS[path].several, context)


@pytest.mark.parametrize("kept", [-1, 0, 1, _CONTEXT])
@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/v1/completions", {"prompt": _LONG}),
        ("/v1/completions", {"prompt": ["a", _LONG]}),
        ("/v1/chat/completions", {"messages": _said(_LONG)}),
        ("/v1/chat/completions", {"messages": _said("a"), "tools": [{"url": _LONG}]}),
        ("/v1/embeddings", {"input": _LONG}),
        ("/v1/embeddings", {"messages": [_said("a"), _said(_LONG)]}),
        ("/classify", {"input": ["a", _LONG]}),
        ("/pooling", {"input": _LONG}),
        ("/v1/score", {"text_1": "a", "text_2": _LONG}),
        ("/v1/rerank", {"query": _LONG, "documents": ["a"]}),
    ],
)
def test_a_long_text_that_is_to_be_cut_is_refused(
    path: str, fields: dict[str, Any], kept: int
) -> None:
    with pytest.raises(NotOffered) as caught:
        _check(path, fields | {"truncate_prompt_tokens": kept})
    assert caught.value.parameter == "truncate_prompt_tokens"


@pytest.mark.parametrize("name", ["input", "instructions"])
def test_a_long_response_that_is_to_be_cut_is_refused(name: str) -> None:
    with pytest.raises(NotOffered) as caught:
        _check("/v1/responses", {"input": "a"} | {name: _LONG, "truncation": "auto"})
    assert caught.value.parameter == "truncation"


@pytest.mark.parametrize(
    ("path", "fields", "parameter"),
    [
        ("/v1/completions", {"prompt": _HUGE}, "prompt"),
        ("/v1/chat/completions", {"messages": _said(_HUGE)}, "messages"),
        ("/v1/messages", {"messages": _said("a"), "system": _HUGE}, "system"),
        ("/v1/responses", {"input": "a", "instructions": _HUGE}, "instructions"),
        ("/v1/embeddings", {"input": [_HUGE]}, "input"),
        ("/v1/rerank", {"query": _HUGE, "documents": ["a"]}, "query"),
        ("/v1/rerank", {"query": "a" * 4000, "documents": ["b"] * 1000}, "documents"),
        ("/v1/score", {"text_1": ["a" * 5000] * 500, "text_2": ["b" * 5000] * 500}, "text_2"),
    ],
)
def test_a_huge_text_is_refused_by_its_field(
    path: str, fields: dict[str, Any], parameter: str
) -> None:
    with pytest.raises(NotOffered) as caught:
        _check(path, fields)
    assert caught.value.parameter == parameter


@pytest.mark.parametrize("name", ["max_tokens_per_query", "max_tokens_per_doc"])
def test_cutting_each_side_of_pairs_counts_a_query_with_each_document(name: str) -> None:
    with pytest.raises(NotOffered) as caught:
        _check("/v1/rerank", {"query": "a" * 1000, "documents": ["b"] * 200, name: 1})
    assert caught.value.parameter == name


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/v1/completions", {"prompt": "a" * MAX_TEXT}),
        ("/v1/completions", {"prompt": [1] * (MAX_TEXT + 1)}),
        ("/v1/completions", {"prompt": _LONG, "truncate_prompt_tokens": None}),
        ("/v1/completions", {"prompt": "a", "prompt_embeds": _HUGE}),
        ("/v1/chat/completions", {"messages": _shown(_HUGE), "truncate_prompt_tokens": -1}),
        ("/v1/responses", {"input": _LONG, "truncation": "disabled"}),
        ("/v1/embeddings", {"input": ["a" * 2000] * 2048, "truncate_prompt_tokens": -1}),
        ("/v1/rerank", {"query": "a" * 1000, "documents": ["b" * 1000] * 1900}),
        ("/v1/score", {"text_1": ["a" * 1000] * 1024, "text_2": ["b" * 1000] * 1024}),
    ],
)
def test_ordinary_requests_pass(path: str, fields: dict[str, Any]) -> None:
    _check(path, fields)


def test_a_model_with_a_long_context_takes_longer_texts() -> None:
    _check("/v1/completions", {"prompt": _HUGE}, context=131_072)
    _check("/v1/completions", {"prompt": _LONG, "truncate_prompt_tokens": -1}, context=131_072)
    with pytest.raises(NotOffered):
        _check("/v1/completions", {"prompt": _LONG, "truncate_prompt_tokens": 1}, context=131_072)


def test_all_pairs_together_may_be_as_long_as_the_limit() -> None:
    documents = ["b" * 1000] * (MAX_PAIRED // 2000)
    _check("/v1/rerank", {"query": "a" * 1000, "documents": documents})
