"""OpenMP's threads in a fork: as many as its environment says, not as many as the library read."""

from __future__ import annotations

import os

import pytest

from penstock.replica.vllm.start.threads import settle_threads


class _Torch:
    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.told: list[int] = []

    def get_num_threads(self) -> int:
        return self.threads

    def set_num_threads(self, threads: int) -> None:
        self.told.append(threads)


_CORES = len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("variable", "wanted"), [("3", 3), ("3,2", 3), ("1", 1), ("", _CORES), ("many", _CORES)]
)
def test_threads_are_set_where_they_differ(
    monkeypatch: pytest.MonkeyPatch, variable: str, wanted: int
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", variable)
    torch = _Torch(1)
    settle_threads(torch)
    assert torch.told == ([wanted] if wanted != 1 else [])


@pytest.mark.parametrize(
    ("variable", "bound"), [("{first}", True), ("{first}-{first}:1", False), ("", False)]
)
def test_a_worker_keeps_to_the_cores_that_vllm_binds_it_to(
    monkeypatch: pytest.MonkeyPatch, variable: str, *, bound: bool
) -> None:
    before = os.sched_getaffinity(0)
    first = min(before)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("GOMP_CPU_AFFINITY", variable.format(first=first))
    try:
        settle_threads(_Torch(1))
        assert os.sched_getaffinity(0) == ({first} if bound else before)
    finally:
        os.sched_setaffinity(0, before)
