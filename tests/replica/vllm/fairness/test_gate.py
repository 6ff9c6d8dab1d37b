"""Requests that wait before the engine: let in in turn, and gone when they leave."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from penstock.replica.vllm.fairness.gate import Gate
from penstock.replica.vllm.fairness.seats import Seats, Ticket

LIMIT = 16  # as it is at first


class Request:
    """A request at a gate, as a task: its sequences enter when it has passed."""

    def __init__(self, gate: Gate, tenant: str, name: str, wants: int = LIMIT) -> None:
        self.sequences = [f"{name}-{i}" for i in range(wants)]
        self.waited: float | None = None
        self._gate = gate
        self._ticket = Ticket(tenant, name, wants, tokens=3)
        self._leave = asyncio.Event()

    @property
    def inside(self) -> bool:
        return self.waited is not None

    def leave(self) -> None:
        """Reads its answer to the end."""
        self._leave.set()

    async def run(self) -> None:
        async with self._gate.passed(self._ticket) as waited:
            self.waited = waited
            for sequence in self.sequences:
                self._gate.entered(sequence)
            await self._leave.wait()


class Clock:
    """Shows what it is told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


async def settled() -> None:
    """Whoever can go on has done so."""
    for _ in range(5):
        await asyncio.sleep(0)


def beside_another(clock: Callable[[], float], step_tokens: int = 1000) -> Gate:
    """A gate at which another tenant has been lately."""
    seats = Seats(64, step_tokens)
    seats.ask(ticket := Ticket("polite", 0))
    seats.ready(clock())
    seats.forget(ticket, clock())
    return Gate(seats, clock)


async def test_one_that_finds_no_seat_waits_is_counted_and_told_how_long() -> None:
    gate = beside_another(clock := Clock())
    first, second = Request(gate, "rude", "first"), Request(gate, "rude", "second", wants=4)
    async with asyncio.TaskGroup() as tasks:
        for request in (first, second):
            tasks.create_task(request.run())
        await settled()
        assert (first.waited, second.inside) == (0.0, False)
        assert gate.held() == (4, 12)
        clock.now = 2.5
        first.leave()
        await settled()
        assert second.waited == 2.5
        assert gate.held() == (0, 0)
        second.leave()


async def test_seats_are_free_when_the_engine_has_done_whoever_reads_the_answer_when() -> None:
    gate = beside_another(Clock())
    first, second = Request(gate, "rude", "first"), Request(gate, "rude", "second", wants=4)
    async with asyncio.TaskGroup() as tasks:
        for request in (first, second):
            tasks.create_task(request.run())
        await settled()
        gate.ended([*first.sequences[:3], "of nobody"])
        await settled()
        assert not second.inside
        gate.ended([first.sequences[3], first.sequences[0]])
        await settled()
        assert second.inside
        first.leave()
        second.leave()


async def test_a_prompt_that_would_not_be_read_in_one_step_waits_until_the_others_are_read() -> (
    None
):
    gate = beside_another(Clock(), step_tokens=10)
    requests = [Request(gate, "rude", name, wants=3) for name in ("first", "second", "third")]
    first, second, third = requests
    async with asyncio.TaskGroup() as tasks:
        for request in requests:
            tasks.create_task(request.run())
        await settled()
        assert not second.inside
        gate.began(["of nobody", *second.sequences])
        await settled()
        assert not second.inside
        gate.began(first.sequences[1:])
        gate.began(first.sequences)
        await settled()
        assert (second.inside, third.inside) == (True, False)
        second.leave()
        await settled()
        assert third.inside
        first.leave()
        third.leave()


async def test_one_that_leaves_while_it_waits_takes_no_seat_and_lets_the_next_one_in() -> None:
    gate = beside_another(Clock())
    first, large = Request(gate, "rude", "first", wants=8), Request(gate, "rude", "large")
    small = Request(gate, "rude", "small", wants=8)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(first.run())
        waiting = tasks.create_task(large.run())
        tasks.create_task(small.run())
        await settled()
        assert not small.inside
        waiting.cancel()
        await settled()
        assert (large.inside, small.inside) == (False, True)
        assert gate.held() == (0, 0)
        first.leave()
        small.leave()


async def test_one_that_leaves_in_the_moment_in_which_it_is_let_in_gives_its_seats_back() -> None:
    gate = beside_another(Clock())
    first, second = Request(gate, "rude", "first"), Request(gate, "rude", "second")
    third = Request(gate, "rude", "third")
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(first.run())
        waiting = tasks.create_task(second.run())
        tasks.create_task(third.run())
        await settled()
        gate.ended(first.sequences)
        waiting.cancel()
        await settled()
        assert (second.inside, third.inside) == (False, True)
        first.leave()
        third.leave()


async def test_one_that_fails_gives_its_seats_back() -> None:
    gate = beside_another(Clock())
    with pytest.raises(ValueError, match="refused"):
        async with gate.passed(Ticket("rude", 0, LIMIT)):
            raise ValueError("refused")
    async with asyncio.timeout(10), gate.passed(Ticket("rude", 1, LIMIT)):
        pass


async def test_a_step_makes_room_where_it_was_short() -> None:
    gate = Gate(Seats(64), Clock())
    requests = [Request(gate, "polite", "polite", wants=1), Request(gate, "rude", "full", wants=16)]
    requests.append(Request(gate, "rude", "next", wants=1))
    async with asyncio.TaskGroup() as tasks:
        for request in requests:
            tasks.create_task(request.run())
        await settled()
        assert [request.inside for request in requests] == [True, True, False]
        gate.stepped(0.001)
        await settled()
        assert requests[2].inside
        for request in requests:
            request.leave()


async def test_when_the_engine_is_dead_all_who_wait_go_on_and_nobody_waits_any_more() -> None:
    gate = beside_another(Clock())
    requests = [Request(gate, "rude", str(i)) for i in range(4)]
    async with asyncio.TaskGroup() as tasks:
        for request in requests[:3]:
            tasks.create_task(request.run())
        await settled()
        assert [request.inside for request in requests] == [True, False, False, False]
        gate.give_up()
        tasks.create_task(requests[3].run())
        await settled()
        assert all(request.inside for request in requests)
        for request in requests:
            request.leave()
    assert gate.held() == (0, 0)


async def test_a_sequence_that_came_by_another_way_is_nobodys() -> None:
    gate = beside_another(Clock())
    gate.entered("health")
    gate.ended(["health"])
    async with asyncio.timeout(10), gate.passed(Ticket("rude", 0, LIMIT)):
        pass
    gate.entered("later, in the same task")
    gate.ended(["later, in the same task"])
