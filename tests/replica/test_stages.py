"""The parts of a start, and how long each took."""

from __future__ import annotations

import time

from penstock.replica.stages import Stages


def test_a_claim_takes_from_when_it_was_made_and_parts_follow_each_other() -> None:
    stages = Stages.of_claim(round(time.monotonic() * 1000) - 5000)
    stages.ended("config")
    stages.ended("load")
    told = stages.told()
    assert list(told) == ["claim", "config", "load"]
    assert 5000 <= told["claim"] < 60_000
    assert told["config"] < told["claim"]


def test_a_programs_first_part_is_its_life_so_far() -> None:
    (part,) = Stages.of_program().told().items()
    assert part[0] == "spawn"
    assert 0 < part[1] < 24 * 3600 * 1000
