"""Only a gateway that gives no sign of any kind is called hung."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from penstock.control.state.fleet.gateway_liveness import GatewayPatience, Signs, Verdict, judge

PATIENCE = GatewayPatience()
HUNG = PATIENCE.hung_after.total_seconds()
HUNG_DRAINING = PATIENCE.hung_draining_after.total_seconds()

# What can happen to the signs at a moment.
Event = Callable[[Signs, float], Signs]
EVENTS: dict[str, Event] = {
    "report": lambda signs, now: signs.reported(signs.bytes_sent, now, draining=False),
    "bytes": lambda signs, now: signs.reported(signs.bytes_sent + 1, now, draining=False),
    "drain": lambda signs, now: signs.reported(signs.bytes_sent, now, draining=True),
    "told": lambda signs, now: signs.asked_to_drain(),
    "answer": lambda signs, now: signs.answered(now),
    "miss": lambda signs, now: signs.missed(),
}
OF_LIFE = ("report", "bytes", "drain", "answer")
HISTORIES = st.lists(st.tuples(st.sampled_from(sorted(EVENTS)), st.floats(0, 120)), max_size=200)


def silent_since(signs: Signs, probes: int) -> Signs:
    for _ in range(probes):
        signs = signs.missed()
    return signs


@given(HISTORIES, st.floats(0, 2000))
def test_a_sign_of_any_kind_within_the_limit_acquits(
    history: list[tuple[str, float]], later: float
) -> None:
    now, signs, last_sign, missed = 0.0, Signs(since=0.0), 0.0, 0
    for name, pause in history:
        now += pause
        signs = EVENTS[name](signs, now)
        last_sign = now if name in OF_LIFE else last_sign
        missed = 0 if name in OF_LIFE else missed + (name == "miss")
    now += later
    drains = any(name in ("drain", "told") for name, _ in history)
    verdict = judge(signs, now, PATIENCE)
    may_be_hung = now - last_sign >= (HUNG_DRAINING if drains else HUNG)
    assert (verdict is Verdict.HUNG) == (may_be_hung and missed >= PATIENCE.hung_unanswered)
    if drains and verdict is not Verdict.HUNG:
        assert verdict is Verdict.DRAINING


def test_one_that_reports_is_not_hung_however_many_probes_it_misses() -> None:
    signs = silent_since(Signs(since=0.0), 10_000).reported(0, 100.0, draining=False)
    assert judge(silent_since(signs, 100), 101.0, PATIENCE) is Verdict.READY


def test_a_head_that_slept_calls_nobody_hung_before_it_has_asked_again() -> None:
    signs = Signs(since=0.0).answered(1.0)
    assert judge(signs, 100_000.0, PATIENCE) is Verdict.SILENT
    assert judge(silent_since(signs, 20), 100_000.0, PATIENCE) is Verdict.HUNG


def test_a_drain_that_was_announced_is_respected_for_ten_minutes() -> None:
    signs = silent_since(Signs(since=0.0).reported(5, 1.0, draining=True), 1000)
    assert judge(signs, 1.0 + HUNG_DRAINING - 1, PATIENCE) is Verdict.DRAINING
    assert judge(signs, 1.0 + HUNG_DRAINING, PATIENCE) is Verdict.HUNG


def test_one_that_never_gave_a_sign_is_starting_then_hung() -> None:
    signs = silent_since(Signs(since=10.0), 20)
    assert judge(signs, 10.0 + HUNG - 1, PATIENCE) is Verdict.STARTING
    assert judge(signs, 10.0 + HUNG, PATIENCE) is Verdict.HUNG
