"""Counting: sessions once, what is left out, and going on from what was stored."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.evals.comparison.pair import Judged, Mark, Pair
from penstock.evals.comparison.report import as_dict, as_markdown, report
from penstock.evals.comparison.rules import rules
from penstock.evals.comparison.tally import Tally
from tests.evals.comparison.examples import failed, pair, said

PAIRS = st.builds(
    pair,
    st.sampled_from(
        [said(), said("x", "length"), failed(), said(model="mini@2"), said("ann@example.org")]
    ),
    again=st.sampled_from([None, said()]),
    session=st.sampled_from(["", "s-1", "s-2", "s-3"]),
    marks=st.sampled_from([[], [Mark.CLIENT_LEFT], [Mark.TRIMMED]]),
)


def tallied(pairs: list[Pair], tally: Tally | None = None) -> Tally:
    """The pairs, counted."""
    tally = tally or Tally(rules())
    for each in pairs:
        tally.add(each)
    return tally


def test_a_session_counts_once_by_its_first_pair_that_can_be_compared() -> None:
    turns = [pair(said(), session="s-1", marks=[Mark.CLIENT_LEFT])]
    turns += [pair(failed(), session="s-1")] * 8
    found = as_dict(report(tallied(turns), "a", "b"))
    (error,) = [each for each in found["checks"] if each["name"] == "error"]
    assert (found["pairs"], found["sessions"]) == (9, 1)
    assert found["left_out"] == {"client left": 1}
    assert (error["pairs"], error["difference"]) == (1, 1.0)


def test_requests_without_a_session_are_each_their_own() -> None:
    assert tallied([pair(said())] * 3).counted == 3


def test_later_pairs_of_a_session_are_shown_and_decide_nothing() -> None:
    turns = [pair(said(), session="s-1")] + [pair(failed(), session="s-1")] * 3
    (error, *_) = report(tallied(turns), "a", "b").findings
    assert (error.difference, error.of_all) == (0.0, 0.75)


def test_what_a_judge_says_later_counts_as_if_it_had_said_it_at_once() -> None:
    verdicts = (Judged.PRIMARY, Judged.NEITHER)
    at_once, later = Tally(rules(judge=True)), Tally(rules(judge=True))
    assert at_once.add(replace(pair(said()), judged=verdicts))
    assert later.add(pair(said()))
    later.add_later(replace(pair(failed()), judged=verdicts), ["judge"])
    told, others = at_once.as_dict(), later.as_dict()
    assert told["checks"] == others["checks"]
    assert told["counted"] == others["counted"] == 1


def test_it_says_of_a_pair_whether_it_is_evidence() -> None:
    tally = Tally(rules())
    assert not tally.add(pair(said(), session="s-1", marks=[Mark.CLIENT_LEFT]))
    assert tally.add(pair(said(), session="s-1"))
    assert not tally.add(pair(said(), session="s-1"))


def test_a_pair_with_a_mark_is_not_counted() -> None:
    assert tallied([pair(said(), marks=[Mark.TRIMMED])]).counted == 0


@given(st.lists(PAIRS, max_size=8), st.lists(PAIRS, max_size=8))
def test_a_stored_tally_goes_on_as_if_nothing_had_been(first: list[Pair], then: list[Pair]) -> None:
    stored = json.loads(json.dumps(tallied(first).as_dict()))
    again = tallied(then, Tally.of(rules(), stored))
    assert again.as_dict() == tallied([*first, *then]).as_dict()


def test_what_answers_hold_is_told_by_whose_and_which() -> None:
    guarded = Tally(rules(guarded={"codename": "(?i)project x"}))
    tallied([pair(said("Project X"), said("ann@example.org"))] * 2 + [pair(said())], guarded)
    found = report(guarded, "a", "b")
    hits = {"candidate: codename": 2, "primary: e-mail address": 2}
    assert as_dict(found)["guardrail_hits"] == hits
    assert "- Held by answers, candidate: codename: 2." in as_markdown(found)


def test_evidence_for_one_margin_is_none_for_another() -> None:
    stored = tallied([pair(said())]).as_dict()
    with pytest.raises(ValueError, match="other checks or margins"):
        Tally.of(rules({"error": 0.03}), stored)
