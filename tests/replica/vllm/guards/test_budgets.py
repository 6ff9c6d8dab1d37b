"""Budgets of tokens on requests as vLLM has parsed them."""

from __future__ import annotations

from types import SimpleNamespace

from pydantic import BaseModel

from penstock.replica.values import Call, Failed
from penstock.replica.vllm.guards import budgets


class Chat(BaseModel):
    """As vLLM's request of a chat."""

    max_tokens: int | None = None
    max_completion_tokens: int | None = None


class Completion(BaseModel):
    """As vLLM's of a completion, which has a limit where none is named."""

    max_tokens: int | None = 16


def _call(path: str = "/v1/chat/completions", *, prompt: int = 0, completion: int = 0) -> Call:
    return Call("r", path, b"{}", "m", max_prompt_tokens=prompt, max_completion_tokens=completion)


def test_a_limit_within_the_budget_passes_and_one_above_it_does_not() -> None:
    assert budgets.completion_refusal(Chat(max_tokens=10), _call(completion=10)) is None
    failed = budgets.completion_refusal(Chat(max_tokens=11), _call(completion=10))
    assert failed is not None
    assert (failed.status, failed.code, failed.param) == (
        400,
        "token_budget_exceeded",
        "max_tokens",
    )
    assert failed.message == "max_tokens is 11, at most 10 tokens are allowed here; ask for fewer."


def test_of_two_limits_the_one_counts_that_vllm_takes() -> None:
    both = Chat(max_tokens=99, max_completion_tokens=5)
    assert budgets.completion_refusal(both, _call(completion=10)) is None


def test_no_budget_refuses_nothing() -> None:
    assert budgets.completion_refusal(Chat(max_tokens=1 << 30), _call()) is None
    assert budgets.prompt_refusal(_call(), 1 << 30) is None


def test_a_limit_that_nobody_named_is_cut_and_not_refused() -> None:
    for request in (Chat(), Completion(), Completion(max_tokens=16)):  # as vLLM fills it in
        assert budgets.completion_refusal(request, _call(completion=9)) is None
    for made, wanted in ((16, 9), (None, 9), (4, 4)):
        parameters = SimpleNamespace(max_tokens=made)
        budgets.cut(parameters, _call(completion=9))
        assert parameters.max_tokens == wanted


def test_who_names_as_much_as_vllm_takes_for_none_has_named_it() -> None:
    def refusal(body: bytes) -> Failed | None:
        call = Call("r", "/v1/completions", body, "m", max_completion_tokens=9)
        return budgets.completion_refusal(Completion(max_tokens=16), call)

    failed = refusal(b'{"prompt": "hi", "max_tokens": 16}')
    assert failed is not None
    assert failed.message == "max_tokens is 16, at most 9 tokens are allowed here; ask for fewer."
    for body in (b'{"prompt": "hi"}', b'{"prompt": "hi", "max_tokens": null}', b"[16]", b"{"):
        assert refusal(body) is None


def test_a_prompt_above_the_budget_is_refused_by_its_field() -> None:
    for path, field in (("/v1/responses", "input"), ("/v1/completions", "prompt")):
        assert budgets.prompt_refusal(_call(path, prompt=7), 7) is None
        failed = budgets.prompt_refusal(_call(path, prompt=7), 8)
        assert failed is not None
        assert failed.param == field
        assert failed.message == "The prompt has 8 tokens, at most 7 are allowed here; shorten it."
