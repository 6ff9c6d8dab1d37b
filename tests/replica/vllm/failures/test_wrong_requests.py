"""Wrong requests at every endpoint: what the replica says, beside what stock vLLM says of the same
engine. The cases, and how to make them anew, are in `golden.py`."""

from __future__ import annotations

import io
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
import pytest_asyncio

from penstock.replica.vllm.engine import VllmEngine
from penstock.replica.vllm.serving.call_logs import WithoutClientsWords
from tests.replica.vllm.failures import golden

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]

CASES = golden.cases()

_FORBIDDEN = ("Traceback", "site-packages", "Param.", "Error(", "object at 0x", "pydantic")
"""What belongs to our side of the API: nobody can do anything about it."""


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=golden.SETTINGS)
async def pair(request: pytest.FixtureRequest) -> AsyncIterator[tuple[str, VllmEngine, Any]]:
    """One engine of a kind, and stock vLLM over the same."""
    async with AsyncExitStack() as stack:
        engine = golden.engine(request.param)
        stack.push_async_callback(engine.stop)
        await engine.start()
        yield request.param, engine, await golden.Stock.over(engine)


@pytest.mark.asyncio(loop_scope="session")
async def test_stock_vllm_says_what_is_kept(pair: tuple[str, VllmEngine, golden.Stock]) -> None:
    kind, _, stock = pair
    said = {case["name"]: await stock.said(case) for case in _of(kind)}
    assert said == {case["name"]: case["vllm"] for case in _of(kind)}


@pytest.mark.asyncio(loop_scope="session")
async def test_the_replica_says_what_is_kept(pair: tuple[str, VllmEngine, golden.Stock]) -> None:
    kind, engine, _ = pair
    said = {case["name"]: await golden.ours(engine, case) for case in _of(kind)}
    assert said == {case["name"]: case["penstock"] for case in _of(kind)}


@pytest.mark.asyncio(loop_scope="session")
async def test_a_clients_mistakes_leave_nothing_in_the_log(
    pair: tuple[str, VllmEngine, golden.Stock], caplog: pytest.LogCaptureFixture
) -> None:
    kind, engine, _ = pair
    (handler,) = (
        one
        for one in logging.getLogger("vllm").handlers
        if any(isinstance(each, WithoutClientsWords) for each in one.filters)
    )
    assert isinstance(handler, logging.StreamHandler)
    told, before = io.StringIO(), handler.stream
    handler.setStream(told)
    try:
        for case in _of(kind):
            if case["penstock"]["status"] < 500:
                await golden.ours(engine, case)
                ours = [each for each in caplog.records if each.name.startswith("penstock.")]
                assert (case["name"], told.getvalue(), ours) == (case["name"], "", [])
    finally:
        handler.setStream(before)


@pytest.mark.asyncio(loop_scope="session")
async def test_the_engine_is_as_well_as_before(
    pair: tuple[str, VllmEngine, golden.Stock],
) -> None:
    await pair[1].probe()


def _of(kind: str) -> list[golden.Case]:
    return [case for case in CASES if case["engine"] == kind]


def test_there_are_a_hundred_cases_of_all_endpoints() -> None:
    assert len(CASES) >= 100
    assert len({case["name"] for case in CASES}) == len(CASES)
    assert {case["endpoint"] for case in CASES} >= {
        "/v1/chat/completions",
        "/v1/completions",
        "/v1/responses",
        "/v1/messages",
        "/v1/messages/count_tokens",
        "/v1/embeddings",
        "/v1/score",
        "/v1/rerank",
        "/pooling",
        "/tokenize",
        "/detokenize",
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_status_and_param_are_vllms_or_there_is_a_reason(case: golden.Case) -> None:
    differs = golden.differs(case["vllm"], case["penstock"], case["endpoint"])
    assert bool(case.get("deviation")) == differs


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_an_error_is_the_clients_and_readable(case: golden.Case) -> None:
    own = case["penstock"]
    assert 400 <= own["status"] < 500
    assert own["type"] == "invalid_request_error"
    assert own["code"]
    assert 10 < len(own["message"]) < 1500
    assert not [one for one in _FORBIDDEN if one in own["message"]]
