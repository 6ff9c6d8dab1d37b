"""When an engine that gives no sign counts as hung."""

from __future__ import annotations

import pytest

from penstock.replica.reporting.progress import Patience, Progress, Reading

_PATIENCE = Patience(idle=10, busy=600)


def _followed(*readings: Reading) -> Progress:
    first = Reading(0, 0, 0, answered=True)
    progress = Progress(first, first)
    for reading in readings:
        progress = progress.after(reading)
    return progress


def _silent(at: float, steps: int = 0, cpu: float = 0.0) -> Reading:
    return Reading(at, steps, cpu, answered=False)


def test_an_idle_engine_that_answers_is_well() -> None:
    progress = _followed(*(Reading(at, 0, 0, answered=True) for at in range(2, 100, 2)))
    assert progress.fault(99, _PATIENCE) == ""


def test_steps_without_answers_are_progress() -> None:
    progress = _followed(*(_silent(at, steps=at) for at in range(2, 100, 2)))
    assert progress.fault(99, _PATIENCE) == ""


def test_neither_steps_nor_cpu_time_is_a_hang() -> None:
    progress = _followed(*(_silent(at, cpu=0.001 * at) for at in range(2, 12, 2)))
    assert progress.fault(9.9, _PATIENCE) == ""
    assert "no progress and used no CPU for 10 s" in progress.fault(10, _PATIENCE)


def test_a_long_step_that_uses_the_cpu_is_no_hang() -> None:
    progress = _followed(*(_silent(at, cpu=0.5 * at) for at in range(2, 500, 2)))
    assert progress.fault(500, _PATIENCE) == ""


def test_a_step_that_works_for_ever_is_one_in_the_end() -> None:
    progress = _followed(*(_silent(at, cpu=0.5 * at) for at in range(2, 602, 2)))
    assert "engine_stuck_after" in progress.fault(600, _PATIENCE)


@pytest.mark.parametrize(("then", "hung"), [(15.0, False), (20.0, True)])
def test_patience_begins_anew_when_the_work_stops(then: float, *, hung: bool) -> None:
    progress = _followed(_silent(8, cpu=8), _silent(10, cpu=10), _silent(12, cpu=10))
    assert bool(progress.fault(then, _PATIENCE)) is hung
