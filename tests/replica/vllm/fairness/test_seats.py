"""How many sequences of a tenant may be in the engine, and whose go next."""

from __future__ import annotations

from collections import Counter
from itertools import chain, zip_longest

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from penstock.replica.vllm.fairness.seats import Limit, Seats, Ticket

MOST = 64
SHORT, LONG = 0.01, 0.5


def asked(seats: Seats, *tickets: Ticket) -> tuple[Ticket, ...]:
    """They wait, and nobody has been let in yet."""
    for ticket in tickets:
        seats.ask(ticket)
    return tickets


def shared_with(other: str, most: int = MOST) -> Seats:
    """Seats where the other tenant has been lately."""
    seats = Seats(most)
    asked(seats, ticket := Ticket(other, 0))
    seats.ready(0)
    seats.forget(ticket, 0)
    return seats


def names(tickets: list[Ticket]) -> list[object]:
    """Their calls."""
    return [ticket.call for ticket in tickets]


def test_a_tenant_that_is_alone_fills_the_engine_and_its_queue_by_an_eighth() -> None:
    seats = Seats(MOST)
    asked(seats, *(Ticket("rude", i) for i in range(MOST * 2)))
    assert len(seats.ready(0)) == MOST + MOST // 8
    assert (seats.inside, seats.waiting) == (72, 56)


def test_beside_another_it_has_sixteen_seats_at_first_and_the_other_goes_at_once() -> None:
    seats = shared_with("polite")
    rude = asked(seats, *(Ticket("rude", i) for i in range(20)))
    assert seats.ready(1) == list(rude[:16])
    polite = asked(seats, *(Ticket("polite", i) for i in range(16)))
    assert seats.ready(1) == list(polite)
    seats.give_back(rude[3], 1)
    assert seats.ready(1) == [rude[16]]


def test_who_has_been_gone_for_a_minute_counts_no_more() -> None:
    seats = shared_with("polite")
    asked(seats, *(Ticket("rude", i) for i in range(20)))
    assert len(seats.ready(59)) == 16
    assert len(seats.ready(60)) == 4


def test_a_newcomer_finds_what_is_inside_and_nothing_more_of_it_goes_in() -> None:
    seats = Seats(MOST)
    rude = asked(seats, *(Ticket("rude", i) for i in range(200)))
    seats.ready(0)
    (polite,) = asked(seats, Ticket("polite", 0))
    assert seats.ready(0) == [polite]
    for ticket in rude[: 72 - 16]:
        seats.give_back(ticket, 1)
        assert not seats.ready(0)
    seats.give_back(rude[60], 1)
    assert seats.ready(0) == [rude[72]]


def test_beside_another_a_tenant_has_no_more_unread_prompts_inside_than_a_step_takes() -> None:
    seats = Seats(MOST, step_tokens=500)
    asked(seats, polite := Ticket("polite", 0, tokens=8))
    seats.ready(0)
    seats.forget(polite, 0)
    one, two, three, four = asked(seats, *(Ticket("rude", i, tokens=4000) for i in range(4)))
    assert seats.ready(1) == [one]
    (late,) = asked(seats, Ticket("polite", 1, tokens=4000))
    assert seats.ready(1) == [late], "each tenant may have one"
    seats.was_read(one)
    assert seats.ready(1) == [two], "its answer goes on meanwhile"
    seats.forget(two, 1)
    assert seats.ready(1) == [three]
    seats.was_read(three)
    seats.was_read(three)
    few = asked(seats, *(Ticket("rude", 9 + i, tokens=100) for i in range(7)))
    seats.forget(four, 1)
    assert seats.ready(1) == list(few[:5]), "short ones go together"


def test_who_is_alone_has_as_many_unread_prompts_inside_as_it_likes() -> None:
    seats = Seats(MOST, step_tokens=500)
    alone = asked(seats, *(Ticket("rude", i, tokens=4000) for i in range(8)))
    assert seats.ready(0) == list(alone)


def test_a_request_goes_whole_also_one_that_is_larger_than_the_limit() -> None:
    seats = shared_with("polite")
    large, small = asked(seats, Ticket("rude", 0, wants=30), Ticket("rude", 1))
    assert seats.ready(1) == [large]
    seats.give_back(large, 14)
    assert not seats.ready(1)
    seats.give_back(large, 1)
    assert seats.ready(1) == [small]


def test_what_waits_for_many_seats_is_not_passed_by_those_of_its_tenant_that_want_few() -> None:
    seats = shared_with("polite")
    first, many, few = asked(seats, Ticket("rude", 0), Ticket("rude", 1, 16), Ticket("rude", 2))
    assert seats.ready(1) == [first]
    seats.forget(first, 1)
    assert seats.ready(1) == [many]
    seats.forget(many, 1)
    assert seats.ready(1) == [few]


def test_an_eighth_of_the_engine_is_left_to_those_who_have_less_than_their_share() -> None:
    seats = Seats(MOST)
    for tenant in "abc":
        asked(seats, *(Ticket(tenant, i) for i in range(40)))
    seats.ready(0)
    for _ in range(MOST):
        seats.stepped(SHORT, 0)
        seats.ready(0)
    assert seats.limit == MOST
    assert seats.inside == 21 * 3, "nobody has more than a third"
    other = Seats(MOST)
    asked(other, *(Ticket("a", i) for i in range(MOST)), Ticket("b", 0))
    other.ready(0)
    for _ in range(MOST):
        other.stepped(SHORT, 0)
        other.ready(0)
    assert other.inside == MOST - MOST // 8


def test_short_steps_give_a_seat_each_where_somebody_waits_for_it() -> None:
    seats = shared_with("polite")
    asked(seats, *(Ticket("rude", i) for i in range(18)))
    seats.ready(1)
    for expected in (17, 18, 18, 18):
        seats.stepped(SHORT, 1)
        seats.ready(1)
        assert seats.limit == expected


def test_a_long_step_takes_half_at_most_and_one_that_is_a_little_too_long_takes_little() -> None:
    limit = Limit(256)
    for _ in range(84):
        limit.stepped(SHORT, 100, holds=True, wanted=True)
    assert limit.seats == 100
    limit.stepped(0.0625, 100, holds=True, wanted=True)
    assert limit.seats == 96
    limit.stepped(5.0, 100, holds=True, wanted=True)
    assert limit.seats == 48
    for _ in range(48):
        limit.stepped(SHORT, 48, holds=True, wanted=True)
    assert limit.seats == 96, "as many short steps later nothing is left of it"


def test_a_cut_is_given_the_time_to_show_what_it_does() -> None:
    limit = Limit(256)
    for _ in range(84):
        limit.stepped(SHORT, 100, holds=True, wanted=True)
    for _ in range(9):
        limit.stepped(LONG, 100, holds=False, wanted=True)
    assert limit.seats == 100


def test_however_long_steps_are_sixteen_seats_stay() -> None:
    limit = Limit(256)
    for _ in range(9):
        limit.stepped(LONG, 100, holds=True, wanted=True)
    assert limit.seats == 16


def test_a_model_whose_steps_are_long_with_nobody_inside_is_not_throttled_for_that() -> None:
    limit = Limit(256)
    for _ in range(9):
        limit.stepped(0.3, 1, holds=True, wanted=False)
    for _ in range(10):
        limit.stepped(0.5, 50, holds=True, wanted=True)
    assert limit.seats == 26
    limit.stepped(0.7, 50, holds=True, wanted=True)
    assert limit.seats == 22


def test_some_long_prompts_do_not_make_it_believe_that_the_model_is_slow() -> None:
    limit = Limit(256)
    limit.stepped(SHORT, 1, holds=True, wanted=False)
    for _ in range(4):
        limit.stepped(LONG, 1, holds=True, wanted=False)
    for _ in range(9):
        limit.stepped(0.07, 50, holds=True, wanted=True)
    assert limit.seats == 16


def test_tenants_that_wait_take_turns() -> None:
    seats = Seats(8)
    first = asked(seats, Ticket("a", "a"), Ticket("b", "b"))
    assert seats.ready(0) == list(first)
    waiting = [Ticket("a", f"a{i}", wants=7) for i in range(2)]
    waiting += [Ticket("b", f"b{i}", wants=7) for i in range(2)]
    asked(seats, *waiting)
    order, inside = list[Ticket](), list(first)
    while inside:
        for ticket in inside:
            seats.forget(ticket, 0)
        inside = seats.ready(0)
        order += inside
    assert names(order) == ["a0", "b0", "a1", "b1"]


def test_the_lowest_priority_number_goes_first_and_waits_behind_no_other() -> None:
    seats = shared_with("polite")
    first, low, high = asked(
        seats, Ticket("rude", 0, 16), Ticket("rude", 1, 16), Ticket("rude", 2, 16, priority=-1)
    )
    assert seats.ready(1) == [high]
    seats.forget(high, 1)
    assert seats.ready(1) == [first]
    seats.forget(low, 1)
    seats.forget(first, 1)
    assert not seats.ready(1)
    assert (seats.inside, seats.waiting) == (0, 0)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=6))
def test_a_tenants_calls_take_turns(sizes: list[int]) -> None:
    seats = shared_with("polite")
    asked(seats, full := Ticket("rude", "full", wants=16))
    seats.ready(1)
    calls = [
        [Ticket("rude", call, wants=16) for _ in range(size)] for call, size in enumerate(sizes)
    ]
    for call in calls:
        asked(seats, *call)
    order, inside = list[Ticket](), [full]
    while inside:
        seats.forget(inside[0], 1)
        inside = seats.ready(1)
        order += inside
    turns = chain.from_iterable(zip_longest(*calls))
    assert order == [ticket for ticket in turns if ticket is not None]


class Anything(RuleBasedStateMachine):
    """Requests that come, end by sequences or at once, and leave; steps of any length; time."""

    def __init__(self) -> None:
        super().__init__()
        self.seats = Seats(32, step_tokens=60)
        self.now = 0.0
        self.tickets: list[Ticket] = []

    @rule(
        tenant=st.sampled_from("abc"),
        call=st.integers(0, 2),
        wants=st.integers(1, 20),
        priority=st.integers(-1, 0),
    )
    def come(self, tenant: str, call: int, wants: int, priority: int) -> None:
        self.tickets.append(Ticket(tenant, call, wants, priority, tokens=7))
        self.seats.ask(self.tickets[-1])
        self._let_in()

    @precondition(lambda self: self.tickets)
    @rule(data=st.data(), seats=st.integers(1, 20))
    def end_some(self, data: st.DataObject, seats: int) -> None:
        self.seats.give_back(data.draw(st.sampled_from(self.tickets)), seats)
        self._let_in()

    @precondition(lambda self: self.tickets)
    @rule(data=st.data())
    def read(self, data: st.DataObject) -> None:
        self.seats.was_read(data.draw(st.sampled_from(self.tickets)))
        self._let_in()

    @precondition(lambda self: self.tickets)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        ticket = data.draw(st.sampled_from(self.tickets))
        self.tickets.remove(ticket)
        self.seats.forget(ticket, self.now)
        self._let_in()

    @rule(seconds=st.floats(0, 1))
    def step(self, seconds: float) -> None:
        self.seats.stepped(seconds, self.now)
        self._let_in()

    @rule(seconds=st.floats(0, 100))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self._let_in()

    def _let_in(self) -> None:
        had, unread = self._inside(), self._unread()
        shared = len({ticket.tenant for ticket in self.tickets}) > 1
        for ticket in self.seats.ready(self.now):
            has = had[ticket.tenant]
            had[ticket.tenant] += ticket.wants
            had_unread = unread[ticket.tenant]
            unread[ticket.tenant] += ticket.reads
            if has:
                assert had.total() <= 32 + 32 // 8
                assert not shared or has + ticket.wants <= self.seats.limit
                assert not (shared and had_unread) or had_unread + ticket.reads <= 60

    def _inside(self) -> Counter[object]:
        counts = Counter[object]()
        for ticket in self.tickets:
            counts[ticket.tenant] += ticket.taken
        return counts

    def _unread(self) -> Counter[object]:
        counts = Counter[object]()
        for ticket in self.tickets:
            counts[ticket.tenant] += ticket.unread
        return counts

    @invariant()
    def whoever_waits_has_something_inside(self) -> None:
        inside = self._inside()
        waiting = [t for t in self.tickets if t in set(self.waiting())]
        assert all(inside[ticket.tenant] for ticket in waiting)

    def waiting(self) -> list[Ticket]:
        tenants = chain.from_iterable(t.values() for t in self.seats._waiting.values())
        return list(chain.from_iterable(chain.from_iterable(c.values() for c in tenants)))

    @invariant()
    def what_it_counts_is_what_there_is(self) -> None:
        waiting = self.waiting()
        assert self.seats.inside == self._inside().total()
        assert self.seats.waiting == sum(ticket.wants for ticket in waiting)
        assert self.seats.waiting_tokens == 7 * self.seats.waiting
        assert 16 <= self.seats.limit <= 32

    def teardown(self) -> None:
        for ticket in self.tickets:
            self.seats.forget(ticket, self.now)
        assert (self.seats.inside, self.seats.waiting, self.seats.waiting_tokens) == (0, 0, 0)
        assert not self.seats._waiting
        assert not self.seats._here
        assert not self.seats._inside
        assert not self.seats._unread


Anything.TestCase.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
test_whatever_comes_nobody_starves_no_limit_is_passed_and_nothing_is_left = Anything.TestCase
