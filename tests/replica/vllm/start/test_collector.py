"""What an engine's start leaves is not walked over by later garbage collections."""

from __future__ import annotations

import gc

import pytest

from penstock.replica.vllm.engine import VllmEngine
from penstock.replica.vllm.start.collector import kept_off_what_stays


def test_what_was_made_inside_is_left_out_of_collections_and_garbage_is_not_kept() -> None:
    before = gc.get_freeze_count()
    with kept_off_what_stays():
        assert not gc.isenabled()
        kept = [[number] for number in range(10_000)]
        cycle: list[object] = []
        cycle.append(cycle)
        del cycle
    assert gc.isenabled()
    assert gc.get_freeze_count() > before + 10_000
    assert len(kept) == 10_000
    assert gc.collect() < 1000


def test_a_start_that_fails_leaves_the_collector_as_it_was() -> None:
    before = gc.get_freeze_count()
    with pytest.raises(KeyError), kept_off_what_stays():
        raise KeyError
    assert gc.isenabled()
    assert gc.get_freeze_count() <= before  # what others froze may go meanwhile


@pytest.mark.vllm
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
async def test_a_full_collection_beside_an_engine_looks_at_few_objects(engine: VllmEngine) -> None:
    assert engine.load().running == 0
    assert gc.isenabled()
    assert len(gc.get_objects()) < gc.get_freeze_count() / 2
