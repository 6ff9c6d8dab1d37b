"""penstock-embed in real vLLM, by its name alone: no setting says that it pools."""

from __future__ import annotations

import base64
import struct
from typing import Any

import pytest

from penstock.replica.values import EngineKind
from tests.replica.vllm.pooling import Pooler
from tests.replica.vllm.talking import Answer

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.asyncio(loop_scope="session"),
    # torch says so of itself while vLLM loads its pooling layers.
    pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning"),
]


async def _embedding(embedder: Pooler, text: str, width: int = 128) -> list[float]:
    """What vLLM makes of a text, of so many numbers."""
    from vllm import PoolingParams

    llm = embedder.engine.launched.llm
    params = PoolingParams(task="embed", dimensions=width)
    async for output in llm.encode(text, params, f"embed-{text}-{width}"):
        numbers: list[float] = output.outputs.data.tolist()
    return numbers


def _near(first: list[float], second: list[float]) -> float:
    return sum(a * b for a, b in zip(first, second, strict=True))


async def test_its_name_is_enough_to_be_run_as_an_embedder(embedder: Pooler) -> None:
    assert embedder.engine.kind() is EngineKind.VECTORS
    assert await embedder.engine.pool("Hello") == 128


@pytest.mark.parametrize("width", [32, 64, 128])
async def test_near_sentences_are_near_at_every_width(embedder: Pooler, width: int) -> None:
    car = await _embedding(embedder, "Where can I buy a cheap car?", width)
    same = await _embedding(embedder, "I want to get an inexpensive automobile.", width)
    other = await _embedding(embedder, "The doctor is ill today.", width)
    assert len(car) == width
    assert _near(car, car) == pytest.approx(1, abs=0.02)
    assert _near(car, same) > _near(car, other) + 0.3


async def test_a_width_that_it_was_not_made_for_is_refused(embedder: Pooler) -> None:
    from vllm.exceptions import VLLMValidationError

    with pytest.raises(VLLMValidationError, match=r"dimensions \[32, 64, 128\]"):
        await _embedding(embedder, "Hello", 50)


async def _asked(embedder: Pooler, **fields: Any) -> Answer:
    """What the endpoint says."""
    return await embedder.ask("/v1/embeddings", **({"input": "Hello"} | fields))


async def test_the_endpoint_gives_an_embedding_for_each_input(embedder: Pooler) -> None:
    answer = await _asked(embedder, input=["The train is late.", "Hello"], dimensions=64)
    rows = answer.json["data"]
    assert [row["index"] for row in rows] == [0, 1]
    assert {len(row["embedding"]) for row in rows} == {64}


async def test_floats_and_base64_are_the_same_numbers(embedder: Pooler) -> None:
    floats = (await _asked(embedder)).json["data"][0]["embedding"]
    text = (await _asked(embedder, encoding_format="base64")).json["data"][0]["embedding"]
    assert struct.unpack("<128f", base64.b64decode(text)) == pytest.approx(floats, abs=1e-6)


async def test_the_endpoint_refuses_other_widths_and_names_those_there_are(
    embedder: Pooler,
) -> None:
    failed = (await _asked(embedder, dimensions=50)).failed
    assert failed.status == 400
    assert "[32, 64, 128]" in failed.message
