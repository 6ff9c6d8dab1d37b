"""Leases in the engine's process: what workers and time do to them, without an engine or a wait."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.replica.vllm.microserving.leases import QUARANTINE, STOPS_WITHIN
from penstock.replica.vllm.microserving.orders import LEASE

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]


@dataclass
class _Blocks:
    """A pool of an engine that is none."""

    free: int = 100
    shown: list[int] = field(default_factory=list)

    def request_for(self, core: Any, asked: Any, end: int, name: str) -> Any:
        return SimpleNamespace(blocks=end // 10)

    def found(self, core: Any, request: Any) -> tuple[Any, int]:
        return None, 0

    def allocated(self, core: Any, request: Any, here: Any, matched: int, end: int) -> list[int]:
        self.free -= request.blocks
        return list(range(request.blocks))

    def cached(self, core: Any, request: Any, tokens: int) -> None:
        assert tokens <= 10 * request.blocks

    def freed(self, core: Any, request: Any, end: int) -> None:
        self.free += request.blocks

    def told(self, core: Any) -> None:
        self.shown.append(self.free)


@dataclass
class _Worker:
    """One that listens, or not."""

    said: list[dict[str, Any]] = field(default_factory=list)
    listens: bool = True

    def send(self, message: dict[str, Any]) -> bool:
        self.said.append(message)
        return self.listens


@dataclass
class _Engine:
    half: Any
    pool: _Blocks
    worker: _Worker
    now: list[float]

    def lease(self, tokens: int = 100, name: str = "a", ttl_ms: int = 0) -> dict[str, Any]:
        asked = {"seq_id": name, "end": tokens, "ttl_ms": ttl_ms, "fingerprint": "f", "tokens": []}
        told: dict[str, Any] = self.half.prep_recv(asked)
        return told

    def nonce(self, name: str = "a") -> str:
        """Of the last lease of this name."""
        orders = (one["nonce"] for one in reversed(self.worker.said) if one.get("open") == name)
        return str(next(orders))

    def says(self, what: str, name: str = "a", **more: Any) -> None:
        """A worker, of that lease."""
        self.half.heard(0, {what: name, "nonce": self.nonce(name), **more})

    def stopped(self, blocks: int, name: str = "a") -> None:
        self.says("stopped", name, blocks=blocks, bytes=1, seconds=0.1)

    def after(self, seconds: float) -> None:
        self.now[0] += seconds
        self.half.tick()


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> _Engine:
    pytest.importorskip("vllm")
    from penstock.replica.vllm.microserving import scheduling

    pool, worker, now = _Blocks(), _Worker(), [100.0]
    monkeypatch.setattr(scheduling, "ghosts", pool)
    monkeypatch.setattr(scheduling, "time", SimpleNamespace(monotonic=lambda: now[0]))
    half = scheduling.Scheduling(10, 100)
    half.know([{"host": "h", "port": 1}], [worker])  # type: ignore[list-item]
    half.attach(None, lambda at: None)
    return _Engine(half, pool, worker, now)


def test_a_lease_that_nobody_uses_gives_its_blocks_back(engine: _Engine) -> None:
    assert engine.lease()["blocks"] == 10
    assert engine.pool.free == 90
    engine.after(10.1)
    assert engine.worker.said[-1] == {"close": "a", "nonce": engine.nonce()}
    assert engine.pool.free == 90  # until the worker has said that nobody writes
    engine.stopped(0)
    assert engine.pool.free == 100
    assert engine.half.failures["expired"] == 1


def test_a_worker_that_says_nothing_holds_who_waits_and_the_blocks_for_a_while(
    engine: _Engine,
) -> None:
    engine.lease()
    waiting = engine.half.commit({"seq_id": "a"})
    engine.after(STOPS_WITHIN)
    assert waiting.result(0) == {"cached": 0, "matched": 0}
    assert engine.worker.said[-2:] == [{"close": "a", "nonce": engine.nonce()}] * 2
    assert engine.pool.free == 90
    engine.after(QUARANTINE)
    assert engine.pool.free == 100
    assert engine.half.commit({"seq_id": "a"})["error"] == "no_lease"


@pytest.mark.parametrize("late", ["stopped", "finished"])
def test_what_a_worker_says_late_settles_no_later_lease_of_that_name(
    engine: _Engine, late: str
) -> None:
    engine.lease()
    message = {late: "a", "nonce": engine.nonce(), "blocks": 9, "bytes": 1, "seconds": 0.1}
    engine.half.release({"seq_id": "a"})
    engine.after(QUARANTINE)
    engine.lease()
    said = len(engine.worker.said)
    engine.half.heard(0, message)
    assert len(engine.worker.said) == said
    engine.half.release({"seq_id": "a"})
    engine.half.heard(0, message)
    assert engine.pool.free == 90
    engine.stopped(0)
    assert engine.pool.free == 100


def test_what_has_come_is_cached_and_stays_pinned_until_its_request_runs(engine: _Engine) -> None:
    engine.lease()
    engine.says("moved")
    engine.says("finished")
    waiting = engine.half.commit({"seq_id": "a"})
    engine.stopped(7)
    assert waiting.result(0) == {"cached": 70, "matched": 0}
    assert engine.half.commit({"seq_id": "a"}) == {"cached": 70, "matched": 0}
    request = SimpleNamespace(kv_transfer_params={LEASE: "a"})
    engine.half.claimed(request)
    engine.after(30)
    assert engine.pool.free == 90
    engine.half.used(request)
    assert engine.pool.free == 100


def test_a_lease_that_is_released_while_its_last_bytes_come_keeps_them(engine: _Engine) -> None:
    engine.lease()
    engine.says("finished")
    engine.half.release({"seq_id": "a"})
    assert engine.lease()["error"] == "no_kv_capacity"  # it is on its way out
    engine.stopped(10)
    assert engine.pool.free == 100
    assert "nonce" in engine.lease()


def test_how_much_came_by_a_lease_is_known_after_its_end(engine: _Engine) -> None:
    engine.lease()
    engine.half.release({"seq_id": "a"})
    engine.stopped(4)
    assert engine.half.ended({"seq_id": "a"}) == {"tokens": 40}
    assert engine.half.ended({"seq_id": "b"}) == {"tokens": 0}


def test_a_sleep_waits_until_no_block_is_pinned_and_begins_no_lease(engine: _Engine) -> None:
    engine.lease(name="a")
    engine.lease(name="b")
    waiting = engine.half.release_all({"asleep": True})
    engine.stopped(0, "a")
    assert not waiting.done()
    engine.stopped(0, "b")
    assert waiting.result(0) == {}
    assert engine.lease(name="c")["error"] == "no_kv_capacity"
    assert engine.half.release_all({"asleep": False}) == {}
    assert "nonce" in engine.lease(name="c")


def test_no_more_than_a_share_is_leased_and_a_deaf_worker_costs_nothing(engine: _Engine) -> None:
    assert "nonce" in engine.lease(300)
    assert engine.lease(10, "b")["error"] == "no_kv_capacity"
    engine.half.release({"seq_id": "a"})
    engine.stopped(0)
    engine.worker.listens = False
    assert engine.lease(100, "c")["error"] == "transfer"
    engine.stopped(0, "c")
    assert engine.pool.free == 100


def test_figures_are_told_when_they_are_others(engine: _Engine) -> None:
    seen = engine.half.figures({"seen": {}})
    waiting = engine.half.figures({"seen": seen})
    assert not waiting.done()
    engine.lease()
    assert waiting.result(0)["leased_blocks"] == 10
    engine.says("moved")
    told = engine.half.figures({"seen": seen})
    assert (told["leased_blocks"], told["transfers"]) == (10, 1)


def test_blocks_in_use_are_told_as_leases_begin_and_end(engine: _Engine) -> None:
    engine.lease()
    engine.half.release({"seq_id": "a"})
    engine.stopped(0)
    assert engine.pool.shown == [90, 100]
