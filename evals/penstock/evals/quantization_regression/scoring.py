"""Has both endpoints score what the primary answered, and the primary once more as its control."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import httpx

from penstock.evals.closed_loop import run_clients
from penstock.evals.comparison.pair import Answer, Pair
from penstock.evals.comparison.replies import error_of
from penstock.evals.endpoint import Endpoint
from penstock.evals.errors import EvalError
from penstock.evals.quantization_regression import texts
from penstock.evals.quantization_regression.texts import NotScored, Tokens
from penstock.evals.shadow_compare.asking import Asking, Line


def score(dataset: Sequence[Line], pairs: Sequence[Pair], asking: Asking) -> list[Pair]:
    """The pairs, with the log probabilities of the primary's text. A pair has them from all or from
    none. Raises `EvalError` where an endpoint cannot score the first text, or where the two do not
    read the same tokens."""
    found = list(pairs)
    work = iter([n for n, each in enumerate(pairs) if texts.text_of(each.primary)])

    # The first is scored alone: who cannot score, or reads other tokens, is told of at once.
    async def first(http: httpx.AsyncClient, number: int) -> None:
        if (index := next(work, None)) is None:
            return
        try:
            await _check_alike(http, dataset[index], pairs[index], asking)
            found[index] = await _scored(http, dataset[index], pairs[index], asking)
        except NotScored as error:
            raise EvalError(str(error)) from error

    async def client(http: httpx.AsyncClient, number: int) -> None:
        for index in work:
            try:
                found[index] = await _scored(http, dataset[index], pairs[index], asking)
            except NotScored:
                continue  # is counted, as what has text and no scores

    run_clients(asking.primary.url, 1, first)
    run_clients(asking.primary.url, asking.concurrency, client)
    return found


async def _check_alike(http: httpx.AsyncClient, line: Line, pair: Pair, asking: Asking) -> None:
    of, to = asking.primary, asking.candidate
    if await _tokens(http, of, line, pair, asking) != await _tokens(http, to, line, pair, asking):
        raise EvalError(
            f"{of} and {to} make other tokens of {pair.id}: with another tokenizer or chat "
            "template there is nothing to compare"
        )


async def _scored(http: httpx.AsyncClient, line: Line, pair: Pair, asking: Asking) -> Pair:
    tokens = await _tokens(http, asking.primary, line, pair, asking)

    async def with_scores(answer: Answer, endpoint: Endpoint) -> Answer:
        body = texts.score_body(tokens, endpoint.model)
        told = await _post(http, endpoint, texts.SCORE_PATH, body, asking)
        return replace(answer, logprobs=texts.logprobs_from(told, tokens))

    return replace(
        pair,
        primary=await with_scores(pair.primary, asking.primary),
        candidate=await with_scores(pair.candidate, asking.candidate),
        again=pair.again and await with_scores(pair.again, asking.primary),
    )


async def _tokens(
    http: httpx.AsyncClient, endpoint: Endpoint, line: Line, pair: Pair, asking: Asking
) -> Tokens:
    prompt = texts.prompt_body(line.question, endpoint.model)
    answer = texts.answer_body(texts.text_of(pair.primary), endpoint.model)
    told = [await _post(http, endpoint, texts.TOKENIZE_PATH, e, asking) for e in (prompt, answer)]
    return Tokens(*map(texts.tokens_from, told))


async def _post(
    http: httpx.AsyncClient, endpoint: Endpoint, path: str, body: Mapping[str, Any], asking: Asking
) -> Any:
    try:
        reply = await http.post(
            endpoint.url + path, json=body, headers=endpoint.headers(), timeout=asking.timeout_s
        )
    except httpx.HTTPError as error:
        raise NotScored(f"{endpoint} cannot score: {path}: no answer: {error!r}") from error
    if reply.status_code != 200:
        told = f"{reply.status_code} {error_of(reply.text)}"
        raise NotScored(f"{endpoint} cannot score: {path}: {told}")
    try:
        return reply.json()
    except ValueError as error:
        raise NotScored(f"{endpoint} cannot score: {path} answered with no JSON") from error
