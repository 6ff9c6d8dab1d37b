"""Models that pool: embeddings, scores and classes, each by its endpoint, and their deep check."""

from __future__ import annotations

import asyncio
import base64
import json
import struct
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import psutil
import pytest
import pytest_asyncio

from penstock.replica.calls.answers import events_of
from penstock.replica.reporting.health import Health
from penstock.replica.values import EngineError, EngineKind
from penstock.replica.vllm.guards.limits import MAX_INPUTS
from penstock.replica.vllm.guards.texts import MAX_CUT
from tests.replica.vllm.inputs import entering_requests
from tests.replica.vllm.pooling import Pooler
from tests.replica.vllm.talking import ask, call, until

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.asyncio(loop_scope="session"),
    # torch says so of itself while vLLM loads its pooling layers.
    pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning"),
]

EMBEDDINGS = "/v1/embeddings"
_TEXT = "word " * 100  # nearly as long as the smaller model takes
_LONG = "a" * (MAX_CUT + 1)
_TOKENIZER = ("/detokenize", "/tokenize")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def judge() -> AsyncIterator[Pooler]:
    """A model of one class, as rerankers are, with weights by chance."""
    one = '{"num_labels": 1}'
    settings = {"runner": "pooling", "convert": "classify", "max_model_len": "256"}
    async with Pooler("penstock-mini", **settings, hf_overrides=one, load_format="dummy") as judge:
        yield judge


async def test_an_embedder_serves_what_embeddings_can_do(embedder: Pooler) -> None:
    assert embedder.facts.endpoints == (
        *_TOKENIZER[:1],
        "/pooling",
        *_TOKENIZER[1:],
        EMBEDDINGS,
        "/v1/rerank",
        "/v1/score",
    )


async def test_a_model_of_one_class_serves_scores_and_classes(judge: Pooler) -> None:
    assert judge.facts.endpoints == (
        "/classify",
        *_TOKENIZER[:1],
        "/pooling",
        *_TOKENIZER[1:],
        "/v1/rerank",
        "/v1/score",
    )


async def test_what_the_model_cannot_do_is_refused_and_another_replica_may_be_asked(
    embedder: Pooler,
) -> None:
    failed = (await embedder.ask("/v1/chat/completions", messages=[])).failed
    assert (failed.status, failed.code, failed.param) == (400, "unsupported_endpoint", "model")
    assert failed.retryable
    assert EMBEDDINGS in failed.message


async def test_an_embedding_is_the_same_in_both_encodings(embedder: Pooler) -> None:
    plain = await embedder.ask(EMBEDDINGS, input=["Hello", "A river"])
    packed = await embedder.ask(EMBEDDINGS, input=["Hello", "A river"], encoding_format="base64")
    assert plain.json["model"] == "penstock-embed"
    for one, other in zip(plain.json["data"], packed.json["data"], strict=True):
        unpacked = base64.b64decode(other["embedding"])
        numbers = struct.unpack(f"<{len(unpacked) // 4}f", unpacked)
        assert list(numbers) == pytest.approx(one["embedding"], abs=1e-5)


async def test_an_embedding_can_be_cut_to_one_of_the_models_sizes(embedder: Pooler) -> None:
    answer = await embedder.ask(EMBEDDINGS, input="Hello", dimensions=32)
    assert len(answer.json["data"][0]["embedding"]) == 32


async def test_usage_is_told_as_the_answer_tells_it(embedder: Pooler) -> None:
    answer = await embedder.ask(EMBEDDINGS, input=["Hello", "A river"])
    assert answer.finished.prompt_tokens == answer.json["usage"]["prompt_tokens"] > 0
    assert (answer.finished.completion_tokens, answer.finished.finish_reasons) == (0, ())
    assert answer.head is not None
    assert answer.head.prompt_tokens == answer.finished.prompt_tokens


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        (EMBEDDINGS, {"input": "x", "dimensions": -1}),
        (EMBEDDINGS, {"input": "x", "dimensions": 1 << 40}),
        (EMBEDDINGS, {"input": "word " * 5000}),
        (EMBEDDINGS, {"input": []}),
        (EMBEDDINGS, {"input": [1 << 40]}),
        (EMBEDDINGS, {"input": [-1]}),
        (EMBEDDINGS, {"input": ["x"] * (MAX_INPUTS + 1)}),
        (EMBEDDINGS, {"input": "x", "encoding_format": "bytes"}),
        ("/pooling", {"data": "x"}),
        ("/v1/score", {"text_1": ["a", "b"], "text_2": ["a", "b", "c"]}),
        ("/v1/score", {"text_1": "a", "text_2": "b", "max_tokens_per_doc": -1}),
        ("/v1/rerank", {"query": "a", "documents": ["b"], "top_n": -1}),
    ],
)
async def test_hostile_values_are_the_clients_fault(
    embedder: Pooler, path: str, fields: dict[str, Any]
) -> None:
    failed = (await embedder.ask(path, **fields)).failed
    assert (failed.status, failed.fault, failed.retryable) == (400, "client", False)
    assert (await embedder.ask(EMBEDDINGS, input="Hello")).finished


async def test_the_engine_gets_the_calls_controls_and_none_of_the_clients(
    embedder: Pooler,
) -> None:
    fields = {
        "input": "Hello",
        "priority": -100,
        "cache_salt": "client",
        "mm_processor_kwargs": {"a": 1},
        "media_io_kwargs": {"a": {}},
        "chat_template_kwargs": {"a": 1},
    }
    content = json.dumps(fields).encode()
    with entering_requests(embedder.engine) as seen:
        await ask(embedder.engine, content, EMBEDDINGS, priority=7, tenant_salt="tenant")
    (one,) = seen
    assert (one.priority >> 32, one.prompt.get("cache_salt")) == (7, "tenant")
    assert "client" not in one.request_id
    assert one.prompt.keys() & fields.keys() == {"cache_salt"}


async def test_a_client_that_leaves_takes_its_texts_out_of_the_engine(embedder: Pooler) -> None:
    content = json.dumps({"input": [_TEXT] * MAX_INPUTS}).encode()
    answering = events_of(embedder.engine.answer, call(content, EMBEDDINGS))
    async with aclosing(answering):
        first = asyncio.ensure_future(anext(answering))
        await embedder.has_texts()
        first.cancel()
        await asyncio.wait((first,))
    await until(lambda: embedder.texts() == 0, "nothing of it is left")
    assert (await embedder.ask(EMBEDDINGS, input="Hello")).finished


async def test_a_refused_list_leaves_no_text_at_the_tokenizer(embedder: Pooler) -> None:
    turns = embedder.engine.launched.llm.renderer._executor._inner
    texts = ["word " * 5000, *[_TEXT] * (MAX_INPUTS - 1)]
    assert (await embedder.ask(EMBEDDINGS, input=texts)).failed.status == 400
    assert not turns._waiting
    assert (await embedder.ask(EMBEDDINGS, input="Hello")).finished


async def test_one_long_list_leaves_room_for_others(embedder: Pooler) -> None:
    content = json.dumps({"input": [_TEXT] * MAX_INPUTS}).encode()
    async with asyncio.TaskGroup() as tasks:
        long = tasks.create_task(ask(embedder.engine, content, EMBEDDINGS))
        await embedder.has_texts()
        beside = 0
        while not long.done():
            assert (await embedder.ask(EMBEDDINGS, input="Hello")).finished
            beside += 1
    assert beside > 1, "one may be the last to come, behind the whole list"
    assert len(long.result().json["data"]) == MAX_INPUTS


async def test_pairs_are_scored_and_documents_ranked(judge: Pooler) -> None:
    documents = ["a river", "a gateway", "tea"]
    scores = await judge.ask("/v1/score", queries="water", documents=documents)
    ranks = await judge.ask("/v1/rerank", query="water", documents=documents, top_n=2)
    told = [one["score"] for one in scores.json["data"]]
    assert [one["relevance_score"] for one in ranks.json["results"]] == pytest.approx(
        sorted(told, reverse=True)[:2]
    )
    assert scores.finished.prompt_tokens == scores.json["usage"]["prompt_tokens"]


async def test_texts_are_classified(judge: Pooler) -> None:
    answer = await judge.ask("/classify", input=["Hello", "tea"])
    assert [one["num_classes"] for one in answer.json["data"]] == [1, 1]
    assert answer.json["model"] == "penstock-mini"
    assert answer.finished.prompt_tokens == answer.json["usage"]["prompt_tokens"]


async def test_pooling_gives_what_the_model_gives(judge: Pooler) -> None:
    answer = await judge.ask("/pooling", input="Hello")
    assert len(answer.json["data"][0]["data"]) == 1


async def test_a_text_to_be_cut_is_bounded_where_it_would_be_a_long_one(embedder: Pooler) -> None:
    failed = (await embedder.ask(EMBEDDINGS, input=_LONG, truncate_prompt_tokens=8)).failed
    assert (failed.status, failed.param) == (400, "truncate_prompt_tokens")
    assert (await embedder.ask(EMBEDDINGS, input=_LONG[:-1], truncate_prompt_tokens=8)).finished


async def test_an_embedder_is_well_when_numbers_come_out(embedder: Pooler) -> None:
    assert embedder.engine.kind() is EngineKind.VECTORS
    assert await embedder.engine.pool("Hello") > 16
    verdict = await Health(embedder.engine, "embedder").deep()
    assert (verdict.ok, verdict.detail) == (True, "")
    assert verdict.latency_us > 0


async def test_an_engine_that_pools_and_is_stopped_while_it_hangs_ends_its_calls(
    judge: Pooler,
) -> None:
    manager = judge.engine.launched.llm.engine_core.resources.engine_manager
    async with asyncio.TaskGroup() as tasks:
        asked = tasks.create_task(judge.ask("/classify", input=[_TEXT] * MAX_INPUTS))
        await judge.has_texts()
        psutil.Process(manager.processes[0].pid).suspend()
        await judge.engine.stop()
    assert asked.result().failed.code == "engine_killed"
    with pytest.raises(EngineError):
        await judge.engine.pool("Hello")
    assert not (await Health(judge.engine, "judge").deep()).ok
