"""Whether a shadow goes on, and what it says where it does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.control.state.rollout.deployment import DeploymentName
from penstock.control.state.shadow.condition import condition_of
from penstock.control.state.shadow.routes import shadow_routes
from penstock.control.state.shadow.shadows import Compared
from tests.control.state.shadow.test_routes import KNOWN, UID, shadow, view


def test_a_shadow_that_the_comparer_knows_runs() -> None:
    assert condition_of(view(shadow()), shadow()) == ("running", "")


def test_one_that_has_ended_says_why_and_one_that_is_paused_needs_no_words() -> None:
    over = replace(shadow(), ended="500 pairs are counted", paused=True)
    assert condition_of(view(over), over) == ("ended", "500 pairs are counted")
    paused = replace(shadow(), paused=True)
    assert condition_of(view(paused), paused) == ("paused", "")


@pytest.mark.parametrize(("name", "end"), [("chat", "primary"), ("small", "candidate")])
def test_one_whose_deployment_is_deleted_waits_for_another_of_that_name(
    name: str, end: str
) -> None:
    gone = view(shadow()).without_deployment(DeploymentName(name))
    state, message = condition_of(gone, shadow())
    assert state == "waiting"
    assert message.startswith(f"{end} is {name!r}: no deployment {name!r}")


def test_one_whose_judge_is_deleted_waits_for_another_of_that_name() -> None:
    judged = shadow(judge="big")
    state, message = condition_of(view(judged), judged)
    assert state == "waiting"
    assert message.startswith("judge is 'big': no deployment 'big'")
    assert shadow_routes(view(judged)) == ()


@pytest.mark.parametrize(
    ("compared", "words"),
    [
        (Compared(), "the comparer starts"),
        (Compared(":9000"), "the comparer starts"),
        (replace(KNOWN, address="", trouble="has ended: no disk"), "the comparer has ended: no"),
        (replace(KNOWN, used_up=frozenset({UID})), "it has had its 1.5 USD of today (UTC)"),
    ],
)
def test_one_that_repeats_nothing_for_now_says_what_it_waits_for(
    compared: Compared, words: str
) -> None:
    waits = shadow(usd_per_day=1.5)
    state, message = condition_of(view(waits, compared), waits)
    assert state == "waiting"
    assert message.startswith(words)
