"""Taking turns: at the tokenizer, and for room in the engine."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from penstock.replica.vllm.fairness.turns import Line, Room, Turns


def test_owners_take_turns_whoever_came_first_with_how_much() -> None:
    owner, done = "", list[str]()
    gate = threading.Event()
    turns = Turns(ThreadPoolExecutor(1), lambda: (owner, owner), 1)
    first = turns.submit(gate.wait)
    owner = "long"
    long = [turns.submit(done.append, f"long {i}") for i in range(3)]
    owner = "short"
    short = turns.submit(done.append, "short")
    gate.set()
    for future in (first, *long, short):
        future.result(timeout=10)
    assert done == ["long 0", "short", "long 1", "long 2"]
    turns.shutdown()


def test_tenants_take_turns_however_many_calls_one_of_them_has_and_so_do_its_calls() -> None:
    owner, done = ("", ""), list[str]()
    gate = threading.Event()
    turns = Turns(ThreadPoolExecutor(1), lambda: owner, 1)
    pieces = [turns.submit(gate.wait)]
    for call in ("a", "b", "c"):
        owner = ("rude", call)
        pieces += [turns.submit(done.append, f"{call}{i}") for i in range(2)]
    owner = ("other", "d")
    pieces += [turns.submit(done.append, f"d{i}") for i in range(2)]
    gate.set()
    for piece in pieces:
        piece.result(timeout=10)
    assert done == ["a0", "d0", "b0", "d1", "c0", "a1", "b1", "c1"]
    turns.shutdown()


def test_a_tenants_first_request_goes_before_what_another_has_brought_in_heaps() -> None:
    line = Line()
    with ExitStack() as rude:
        heap = [rude.enter_context(line.place("rude")) for _ in range(20)]
        assert heap == sorted(set(heap))
        line.reached(heap[3])
        with line.place("other") as first, line.place("other") as second:
            assert heap[3] == first < second == heap[4]


def test_what_ends_before_the_engine_gets_to_it_moves_nobody_back() -> None:
    line = Line()
    with ExitStack() as rude:
        heap = [rude.enter_context(line.place("rude")) for _ in range(20)]
        with line.place("rude") as refused:
            assert refused > heap[-1]
        with line.place("other") as first:
            assert first == heap[0]


def test_a_tenant_with_nothing_under_way_begins_anew_and_one_with_something_goes_on() -> None:
    line = Line()
    with line.place("gone"), line.place("gone"):
        pass
    with line.place("here") as older:
        line.reached(older)
        with line.place("gone") as anew, line.place("here") as next_one:
            assert (anew, next_one) == (older, older + 1)


def test_a_piece_that_breaks_says_so_and_the_next_one_runs() -> None:
    turns = Turns(ThreadPoolExecutor(1), lambda: (None, None), 1)
    broken = turns.submit(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        broken.result(timeout=10)
    assert turns.submit(lambda: 7).result(timeout=10) == 7
    turns.shutdown()


def test_once_shut_down_every_piece_is_refused_and_none_waits_for_ever() -> None:
    turns = Turns(ThreadPoolExecutor(1), lambda: (None, None), 1)
    turns.shutdown()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="after shutdown"):
            turns.submit(lambda: 7)


def test_a_piece_that_nobody_waits_for_any_more_is_left_out() -> None:
    gate = threading.Event()
    turns = Turns(ThreadPoolExecutor(1), lambda: (None, None), 1)
    turns.submit(gate.wait)
    dropped, after = turns.submit(lambda: 1), turns.submit(lambda: 2)
    assert dropped.cancel()
    gate.set()
    assert after.result(timeout=10) == 2
    turns.shutdown()


class _Owner:
    """Somebody who may end."""


def test_what_waits_of_an_owner_who_ended_is_cancelled_and_so_is_what_comes_later() -> None:
    gone = _Owner()
    owner: _Owner | None = None
    gate = threading.Event()
    turns = Turns(ThreadPoolExecutor(1), lambda: ("acme", owner), 1)
    turns.submit(gate.wait)
    other = turns.submit(lambda: 1)
    owner = gone
    waiting = [turns.submit(lambda: 2) for _ in range(3)]
    turns.forget(gone)
    late = turns.submit(lambda: 3)
    assert all(one.cancelled() for one in (*waiting, late))
    gate.set()
    assert other.result(timeout=10) == 1
    turns.shutdown()


async def test_an_owner_whose_piece_runs_can_end_and_others_go_on() -> None:
    gone = _Owner()
    owner: _Owner | None = gone
    begun, gate = threading.Event(), threading.Event()
    turns = Turns(ThreadPoolExecutor(1), lambda: ("acme", owner), 1)
    loop = asyncio.get_running_loop()

    def run() -> None:
        begun.set()
        gate.wait()

    running = loop.run_in_executor(turns, run)
    waiting = loop.run_in_executor(turns, lambda: 1)
    await asyncio.to_thread(begun.wait)
    turns.forget(gone)
    with pytest.raises(asyncio.CancelledError):
        await waiting
    with pytest.raises(asyncio.CancelledError):
        await loop.run_in_executor(turns, lambda: 2)
    gate.set()
    await running
    owner = None
    assert await loop.run_in_executor(turns, lambda: 3) == 3
    turns.shutdown()


async def _inside(room: Room, tokens: int, seen: list[int], leave: asyncio.Event) -> None:
    async with room.taken(tokens):
        seen.append(tokens)
        await leave.wait()


async def test_what_finds_no_room_waits_in_order_and_one_that_is_too_large_gets_in_alone() -> None:
    room, seen, leave = Room(10), list[int](), asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        for tokens in (4, 6, 50, 1):
            tasks.create_task(_inside(room, tokens, seen, leave))
        await asyncio.sleep(0)
        assert seen == [4, 6]
        leave.set()
    assert seen == [4, 6, 50, 1]


async def test_one_that_leaves_while_it_waits_takes_no_room() -> None:
    room, seen, leave = Room(10), list[int](), asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_inside(room, 10, seen, leave))
        waiting = tasks.create_task(_inside(room, 9, seen, leave))
        await asyncio.sleep(0)
        waiting.cancel()
        tasks.create_task(_inside(room, 8, seen, leave))
        leave.set()
    assert seen == [10, 8]
