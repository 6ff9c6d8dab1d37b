"""Whether an agent lets a replica start, as far as memory goes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from penstock.control.errors import Unavailable
from penstock.control.node_agent.fitting import MOST_AT_ONCE, Fitting, NodeMemory, fit_of
from penstock.control.rpc.wire import fit_reply
from penstock.control.state.fleet.memory import FitVerdict, ReplicaMemory
from penstock.v1 import nodes_pb2


class Sums:
    """Each replica has to have 100 bytes."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.broken = False
        self.known = True
        self.at_once = self.most_at_once = 0

    async def told(self, arguments: Sequence[str]) -> Mapping[str, Any]:
        self.asked.append(list(arguments))
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        if self.broken:
            raise Unavailable("no sum of memory")
        free = int(arguments[arguments.index("--free") + 1])
        return {
            "verdict": ("fits" if free >= 100 else "too_large") if self.known else "unknown",
            "lines": [{"what": "weights", "bytes": 110, "note": ""}],
            "needed": 110,
            "least": 100 if self.known else 0,
            "free": free,
            "refusal": "" if free >= 100 else f"110 are needed, {free} are free",
            "reason": "" if free >= 100 else "10 are missing",
            "advice": ["another node"],
        }


class Machine:
    """A machine with so many bytes, and one accelerator."""

    def __init__(self, free: int) -> None:
        self.free = free
        self.starting: list[str] = []
        self.taken: dict[str, int] = {}

    def resources(self) -> nodes_pb2.NodeResources:
        gpu = nodes_pb2.Device(uuid="GPU-0", memory_bytes=1000, memory_used_bytes=950)
        return nodes_pb2.NodeResources(memory_available_bytes=self.free, devices=[gpu])

    async def measured(self) -> Mapping[str, ReplicaMemory]:
        return {name: ReplicaMemory(name, taken) for name, taken in self.taken.items()}


def fitting(machine: Machine, sums: Sums) -> Fitting:
    return Fitting(sums, NodeMemory(machine.resources, lambda: machine.starting, machine.measured))


def replica(name: str, **more: Any) -> nodes_pb2.ReplicaSpec:
    return nodes_pb2.ReplicaSpec(replica_id=name, **{"engine": "vllm", "model": "mini", **more})


async def test_what_finds_memory_is_asked_for_once() -> None:
    machine, sums = Machine(free=500), Sums()
    judge = fitting(machine, sums)
    assert [await judge.refusal(replica(name)) for name in ("a", "b")] == ["", ""]
    assert len(sums.asked) == 1
    assert await judge.refusal(replica("c", engine_args=["dtype=float32"])) == ""
    assert sums.asked[-1][-4:] == ["--engine-arg", "dtype=float32", "--", "mini"]


async def test_a_model_that_was_not_here_is_judged_once_it_is() -> None:
    machine, sums = Machine(free=90), Sums()
    judge = fitting(machine, sums)
    sums.known = False
    assert await judge.refusal(replica("a", model="someone/some-model")) == ""
    sums.known = True
    assert await judge.refusal(replica("b", model="someone/some-model")) != ""


async def test_a_model_whose_weights_were_written_anew_is_judged_anew(tmp_path: Path) -> None:
    weights = tmp_path / "model.safetensors"
    weights.touch()
    sums = Sums()
    judge = fitting(Machine(free=500), sums)
    for second in (1, 1, 2):
        os.utime(weights, (second, second))
        await judge.refusal(replica("a", model=str(tmp_path)))
    assert len(sums.asked) == 2


def test_a_sum_that_no_machine_could_hold_can_still_be_told() -> None:
    line = {"what": "logits", "bytes": 10**30, "note": ""}
    told = {"verdict": "tight", "lines": [line], "needed": 10**30, "free": 1, "reason": "x"}
    reply = fit_reply(fit_of({**told, "advice": []}))
    assert reply.needed_bytes == reply.lines[0].bytes == (1 << 63) - 1


async def test_plans_ask_for_few_sums_at_once() -> None:
    sums = Sums()
    judge = fitting(Machine(free=500), sums)
    await asyncio.gather(*(judge.fit(replica("a")) for _ in range(20)))
    assert (len(sums.asked), sums.most_at_once) == (20, MOST_AT_ONCE)


async def test_what_finds_none_is_refused_with_the_sum() -> None:
    judge = fitting(Machine(free=90), Sums())
    assert await judge.refusal(replica("a")) == "110 are needed, 90 are free"


async def test_replicas_that_start_together_share_what_is_free() -> None:
    machine = Machine(free=150)
    machine.starting = ["a", "b"]
    judge = fitting(machine, Sums())
    said = await asyncio.gather(judge.refusal(replica("a")), judge.refusal(replica("b")))
    assert list(said) == ["", "110 are needed, 50 are free"]


@pytest.mark.parametrize(("taken", "free", "refused"), [(0, 120, True), (80, 120, False)])
async def test_what_a_starting_replica_has_taken_is_not_counted_twice(
    taken: int, free: int, refused: bool
) -> None:
    machine = Machine(free=200)
    machine.starting = ["a"]
    judge = fitting(machine, Sums())
    await judge.refusal(replica("a"))
    machine.taken, machine.free = {"a": taken}, free
    assert bool(await judge.refusal(replica("b"))) is refused


async def test_a_replica_that_is_ready_has_all_that_it_takes() -> None:
    machine = Machine(free=200)
    machine.starting = ["a"]
    judge = fitting(machine, Sums())
    await judge.refusal(replica("a"))
    machine.starting, machine.free = [], 100
    assert await judge.refusal(replica("b")) == ""


async def test_a_replica_with_an_accelerator_is_judged_by_its_memory() -> None:
    machine, sums = Machine(free=500), Sums()
    refused = await fitting(machine, sums).refusal(replica("a", devices=["GPU-0"]))
    assert refused == "110 are needed, 50 are free"
    assert sums.asked[0][:4] == ["--free", "50", "--device-bytes", "1000"]


async def test_what_cannot_be_told_is_no_reason_to_refuse() -> None:
    sums = Sums()
    sums.broken = True
    judge = fitting(Machine(free=1), sums)
    assert await judge.refusal(replica("a")) == ""
    fit = await judge.fit(replica("a"))
    assert (fit.verdict, fit.reason) == (FitVerdict.UNKNOWN, "no sum of memory")


async def test_engines_that_load_no_model_are_not_judged() -> None:
    sums = Sums()
    assert await fitting(Machine(free=1), sums).refusal(replica("a", engine="simulated")) == ""
    assert (await fitting(Machine(free=1), sums).fit(replica("a", engine="openai"))).reason
    assert sums.asked == []


async def test_a_sum_is_told_whether_it_fits_or_not() -> None:
    machine = Machine(free=500)
    judge = fitting(machine, Sums())
    assert (await judge.fit(replica("a"))).verdict is FitVerdict.FITS
    machine.free = 10
    fit = await judge.fit(replica("a"))
    assert (fit.verdict, fit.free_bytes, fit.advice) == (
        FitVerdict.TOO_LARGE,
        10,
        ("another node",),
    )
