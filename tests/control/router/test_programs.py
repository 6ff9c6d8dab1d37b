"""What each program that ships decides, over what engines there are and what they hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from penstock.control.errors import InvalidSpec
from penstock.control.router.api import Engine, EngineCallError, Engines, KvAddress, Request
from penstock.control.router.program import Program, program_of
from penstock.control.router.stats import Stats
from penstock.control.shipped_programs import shipped_programs
from penstock.control.state.routing.program import check_program
from penstock.v1.router_pb2 import EngineCall, EngineReply, EngineVerb, EngineView, RouteAsk
from tests.fakes.router_gateway import view

LENGTH, BLOCK = 1000, 16
TEXTS = shipped_programs()
P, D = view("p", "prefill"), view("d", "decode")


class Calls:
    """Answers as engines that hold so many tokens of the prompt."""

    def __init__(self, held: Mapping[str, int], error: str = "") -> None:
        self.made: list[tuple[Any, ...]] = []
        self._held = held
        self._error = error

    def new_seq_id(self) -> str:
        return "s"

    async def call(self, call: EngineCall) -> EngineReply:
        verb = EngineVerb.Name(call.verb).removeprefix("ENGINE_VERB_").lower()
        if verb not in ("tokenize", "lookup"):
            to = (call.to_replica_id,) if call.to_replica_id else ()
            self.made.append((verb, call.replica_id, *to, call.begin, call.end))
        end = min(call.end, LENGTH) // BLOCK * BLOCK
        held = self._held.get(call.replica_id, 0)
        found = held if verb == "lookup" else min(held, end)
        return EngineReply(error=self._error, length=LENGTH, matched_len=found, end=end)


def program(name: str) -> Program:
    return program_of(TEXTS[name], name)


async def decided(
    name: str,
    *views: EngineView,
    held: Mapping[str, int] | None = None,
    stats: Stats | None = None,
    session: str = "",
    **args: Any,
) -> tuple[Any, ...]:
    """Where it generates, from which token on, and which calls moved something."""
    stats, calls = stats or Stats(), Calls(held or {})
    engines = Engines(Engine(each, calls, stats) for each in views)
    found = await program(name).route(Request(RouteAsk(session=session)), engines, stats, **args)
    if found is None:
        return (None,)
    assert isinstance(found.replica, Engine)
    begin = found.kv.end if isinstance(found.kv, KvAddress) else 0
    return (found.replica.id, begin, *calls.made)


WHOLE = 2**32 - 1


@pytest.mark.parametrize("name", TEXTS)
def test_each_is_short_and_says_of_itself_what_it_is(name: str) -> None:
    assert len(TEXTS[name].splitlines()) < 20
    facts = check_program(TEXTS[name])
    loaded = program(name)
    assert set(facts.uses) == loaded.uses
    assert loaded.summary


@pytest.mark.parametrize("name", TEXTS)
async def test_each_generates_on_the_one_engine_that_there_is(name: str) -> None:
    assert await decided(name, view("a", moves_kv=False), session="s") == ("a", 0)
    assert await decided(name, view("a")) == ("a", 0)


@pytest.mark.parametrize("name", TEXTS)
async def test_engines_without_microserving_are_sent_whole_requests(name: str) -> None:
    views = [view("a", "prefill", moves_kv=False), view("b", "decode", moves_kv=False)]
    assert await decided(name, *views) == ("b", 0)


async def test_data_parallel_takes_the_engine_with_the_fewest_calls_and_a_place() -> None:
    views = [view("a", running=2, waiting=1), view("b", running=1), view("c", places_left=0)]
    assert await decided("data_parallel", *views) == ("b", 0)
    assert await decided("data_parallel", *views, view("e", "decode", running=9)) == ("e", 0)


@pytest.mark.parametrize(
    ("name", "held", "args", "result"),
    [
        ("prefill_decode", 0, {}, ("d", 992, 0, 992)),
        ("prefill_decode", 96, {}, ("d", 992, 96, 992)),
        ("cache_aware_prefill_decode", 96, {}, ("d", 992, 96, 992)),
        ("cache_aware_prefill_decode", 800, {}, ("d", 0)),
        ("cache_aware_prefill_decode", 800, {"least": 100}, ("d", 992, 800, 992)),
        ("balanced_prefill_decode", 0, {}, ("d", 896, 0, 896)),
        ("balanced_prefill_decode", 0, {"pd_balance_factor": 0.5}, ("d", 496, 0, 496)),
        ("balanced_prefill_decode", 600, {"pd_balance_factor": 0.5}, ("d", 496)),
        ("balanced_prefill_decode", 0, {"pd_balance_factor": 1}, ("d", 0)),
        ("balanced_prefill_decode", 0, {"pd_balance_factor": 0.99}, ("d", 0)),
        ("self_balancing_prefill_decode", 0, {}, ("d", 992, 0, 992)),
    ],
)
async def test_what_the_decode_engine_lacks_is_computed_by_the_other_one(
    name: str, held: int, args: dict[str, Any], result: tuple[Any, ...]
) -> None:
    engine, begin, *sent = result
    found = await decided(name, P, D, held={"d": held}, **args)
    assert found[:2] == (engine, begin)
    sends = [each[1:] for each in found[2:] if each[0] == "remote_send"]
    assert sends == ([("p", "d", *sent)] if sent else [])


@pytest.mark.parametrize(
    ("prefill", "decode", "most", "begin"),
    [(0, 500, 0.5, 992), (400, 0, 0.5, 800), (400, 300, 0.5, 944), (9000, 0, 0.5, 496)],
)
async def test_the_share_follows_what_the_prefill_engine_has_more_to_compute(
    prefill: int, decode: int, most: float, begin: int
) -> None:
    views = (view("p", "prefill", waiting_tokens=prefill), view("d", waiting_tokens=decode))
    views[1].role = "decode"
    found = await decided("self_balancing_prefill_decode", *views, most=most)
    assert found[1] == begin


async def test_without_roles_one_engine_computes_for_another() -> None:
    found = await decided("prefill_decode", view("a", running=3), view("b"))
    assert found == ("b", 992, ("prep_recv", "b", 0, WHOLE), ("remote_send", "a", "b", 0, 992))


async def test_the_decode_engine_that_holds_most_of_the_prompt_is_taken() -> None:
    views = (P, D, view("e", "decode", running=3))
    assert (await decided("cache_aware_prefill_decode", *views, held={"e": 960}))[0] == "e"


async def test_a_sessions_context_moves_to_another_engine_when_its_own_is_busy() -> None:
    stats, name = Stats(), "context_migration"
    free, busy = [view("a"), view("b", running=1)], [view("a", running=9), view("b", running=1)]
    first = await decided(name, *free, stats=stats, session="s")
    again = await decided(name, view("a", running=4), view("b"), stats=stats, session="s")
    moved = await decided(name, *busy, stats=stats, session="s", held={"a": 320})
    after = await decided(name, view("a"), view("b", running=3), stats=stats, session="s")
    assert (first, again) == (("a", 0), ("a", 0))
    assert moved == ("b", 0, ("migrate", "a", "b", 0, 320))
    assert after == ("b", 0)


async def test_a_context_that_is_nowhere_is_not_moved() -> None:
    stats = Stats()
    stats.record_routing_stats("s", {"home": "a"})
    found = await decided(
        "context_migration", view("a", places_left=0), view("b"), stats=stats, session="s"
    )
    assert found == ("b", 0)


@pytest.mark.parametrize("name", sorted(set(TEXTS) - {"data_parallel", "context_migration"}))
async def test_where_no_kv_can_be_received_the_gateway_decides(name: str) -> None:
    stats = Stats()
    engines = Engines(Engine(each, Calls({}, "no_kv_capacity"), stats) for each in (P, D))
    with pytest.raises(EngineCallError, match="no_kv_capacity"):  # which leaves it to the gateway
        await program(name).route(Request(RouteAsk()), engines, stats)


def test_what_is_recorded_is_bounded() -> None:
    stats = Stats()
    for number in range(20_000):
        stats.record_routing_stats(str(number), {"n": number})
    assert stats.routing_stats("0") == {}
    assert stats.routing_stats("19999") == {"n": 19_999}
    for wrong in ({"n": "x" * 257}, {"x" * 257: 1}, {"n": 1 << 70}, {str(n): n for n in range(33)}):
        with pytest.raises(ValueError, match=r"text of at most|a value must be|more than 32"):
            stats.record_routing_stats("k", wrong)
    with pytest.raises(ValueError, match="a value must be"):
        stats.record_routing_stats("k", {"n": [1]})  # type: ignore[dict-item]


def test_a_text_that_ships_is_no_other_than_what_the_head_takes() -> None:
    with pytest.raises(InvalidSpec):
        check_program("def route(): ...")
