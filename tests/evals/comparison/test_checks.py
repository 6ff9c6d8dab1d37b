"""What each check says of a pair: positive where the candidate is worse, None where nothing."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.evals.comparison.checks.between import longer, times
from penstock.evals.comparison.checks.guardrails import TOO_SLOW, Guard, Seen
from penstock.evals.comparison.pair import Answer, Asked, Choice, Judged, Pair
from penstock.evals.comparison.rules import rules
from tests.evals.comparison.examples import TOOLS, called, failed, pair, said

CHECKS = {
    each.name: each
    for each in rules(guarded={"codename": r"(?i)\bproject x\b"}, scored=True).checks
}
JSON = Asked(json=True)
SCHEMA = Asked(json=True, schema={"type": "object", "required": ["a"]})
GERMAN = "Der Fluss ist sehr lang und fliesst durch viele alte Städte bis in das Meer."
ENGLISH = "The river is very long and flows through many old towns until it meets the sea."
SAME = said()


def judged(first: Judged, second: Judged) -> Pair:
    """A pair with a judge's verdicts."""
    return Pair("r-1", SAME, SAME, judged=(first, second))


def timed(candidate: float, again: float | None, primary: float = 0.001) -> Pair:
    """A pair with times; the client's own is much shorter, and says nothing."""
    times = [None if each is None else said(ttft=each, tpot=each, total=each) for each in (again,)]
    one = said(ttft=candidate, tpot=candidate, total=candidate)
    return pair(one, said(ttft=primary, tpot=primary, total=primary), times[0])


def scored(candidate: list[float] | None, again: list[float] | None = None) -> Pair:
    """A pair whose primary's text has two tokens, one surer than the other."""
    control = None if again is None else said(logprobs=again)
    return pair(said(logprobs=candidate), said(logprobs=[-0.5, -1.5]), control)


SAID = [
    ("perplexity", scored([-0.5 - math.log(2), -1.5 - math.log(2)]), 0.5),
    ("perplexity", scored([-1.5, -0.5]), 0.0),
    ("perplexity", scored([-50.0, -50.0]), 1.0),
    ("perplexity", scored(None), None),
    ("perplexity", scored([]), None),
    ("logprobs", scored([-0.7, -1.3], [-0.5, -1.5]), 0.2),
    ("logprobs", scored([-0.7, -1.3], [-0.7, -1.3]), 0.0),
    ("logprobs", scored([-50.0, -50.0], [-0.5, -1.5]), 1.0),
    ("logprobs", scored([-0.7], [-0.5, -1.5]), None),
    ("logprobs", scored([-0.7, -1.3]), None),
    ("error", pair(failed()), 1.0),
    ("error", pair(SAME, failed()), -1.0),
    ("error", pair(failed(), failed()), 0.0),
    ("finish_length", pair(said("a", "length")), 1.0),
    ("finish_length", pair(SAME, said("a", "length")), -1.0),
    ("finish_length", pair(failed()), None),
    ("empty", pair(said(" ")), 1.0),
    ("empty", pair(called("time", "{}")), 0.0),
    ("refusal", pair(said("I'm sorry, but no.")), 1.0),
    ("refusal", pair(Answer((Choice(refusal="No."),))), 1.0),
    ("refusal", pair(SAME, said("", "content_filter")), -1.0),
    ("json", pair(said("Hi"), said("{}")), None),
    ("json", pair(said("Hi"), said("{}"), asked=JSON), 1.0),
    ("json", pair(said("{}"), said('{"a": 1}'), asked=SCHEMA), 1.0),
    ("json", pair(said("NaN"), said("{"), asked=JSON), 0.0),
    ("json", pair(said("3"), said("{}"), asked=JSON), 1.0),
    ("json", pair(said("x"), asked=Asked(json=True, schema={"type": 3})), None),
    ("tool_arguments", pair(called("time", "{}")), None),
    ("tool_arguments", pair(called("weather", "{}"), SAME, asked=TOOLS), 1.0),
    ("tool_arguments", pair(called("weather", '{"city": "Rome"}'), asked=TOOLS), 0.0),
    ("tool_arguments", pair(called("news", "{}"), asked=TOOLS), 1.0),
    ("tool_arguments", pair(called("time", "[]"), asked=TOOLS), 1.0),
    ("tool_names", pair(called("time", "{}"), asked=TOOLS), None),
    ("tool_names", pair(called("time", "{}"), SAME, SAME, TOOLS), 1.0),
    ("tool_names", pair(called("time", "{}"), SAME, called("time", "{}"), TOOLS), 0.0),
    ("tool_calls", pair(called("time", '{"a":1}'), called("time", '{"a": 1}'), SAME, TOOLS), -1.0),
    ("guardrails", pair(said("Write to ann@example.org")), 1.0),
    ("guardrails", pair(said("All about Project X")), 1.0),
    ("guardrails", pair(called("mail", '{"to": "ann@example.org"}')), 1.0),
    ("ttft", timed(0.2, None), None),
    ("ttft", timed(0.2, 0.1), 0.5),
    ("tpot", timed(0.1, 0.2), -0.5),
    ("total", timed(9.0, 0.1), 1.0),
    ("total", pair(failed(), SAME, SAME), None),
    ("judge", pair(SAME), None),
    ("judge", judged(Judged.PRIMARY, Judged.PRIMARY), 1.0),
    ("judge", judged(Judged.PRIMARY, Judged.CANDIDATE), 0.0),
    ("judge", judged(Judged.CANDIDATE, Judged.NEITHER), -0.5),
    ("semantic", pair(SAME, SAME, SAME), None),
    ("language", pair(said(GERMAN), said(ENGLISH), said(ENGLISH)), 1.0),
    ("language", pair(said("Ja."), said("Yes."), said("Yes.")), None),
    ("exact", pair(said("hello there!"), again=SAME), 1.0),
    ("exact", pair(said("x"), again=said("y")), 0.0),
    ("normalised", pair(said("hello  there!"), again=SAME), 0.0),
    ("similarity", pair(SAME, again=SAME), 0.0),
    ("similarity", pair(said("x"), again=failed()), None),
    ("length", pair(said("aa"), said("a")), 0.5),
    ("length", pair(said(""), said("a")), None),
    ("tokens", pair(said(completion_tokens=10), said(completion_tokens=20)), -0.5),
    ("tokens", pair(SAME), None),
    ("cost", pair(said(cost=0.04), said(cost=0.01)), 1.0),
]


@pytest.mark.parametrize(("check", "given_pair", "expected"), SAID)
def test_a_check_says_by_how_much_the_candidate_is_worse(
    check: str, given_pair: Pair, expected: float | None
) -> None:
    measured = CHECKS[check].measure(given_pair)
    assert measured == (expected if expected is None else pytest.approx(expected))


def test_every_check_is_among_the_examples() -> None:
    assert {check for check, _, _ in SAID} == set(CHECKS)


def test_meaning_is_the_cosine_of_what_was_embedded() -> None:
    one, near, far = (said(embedding=each) for each in ([1, 0], [3, 0], [0, 2]))
    measure = CHECKS["semantic"].measure
    assert measure(pair(far, one, near)) == pytest.approx(1)
    assert measure(pair(near, one, far)) == pytest.approx(-1)
    assert measure(pair(said(embedding=[1, 0, 0]), one, near)) is None
    assert measure(pair(said(embedding=[0, 0]), one, near)) is None


texts = st.text(max_size=30) | st.sampled_from(["{}", '{"a": 1}', "I cannot help", ENGLISH, GERMAN])
calls = st.builds(called, st.sampled_from(["weather", "time", "x"]), texts)
answers = (
    st.builds(said, texts, st.sampled_from(["stop", "length", ""]), ttft=st.floats(0, 100))
    | calls
    | st.just(failed())
)


@given(answers, answers, st.none() | answers, st.sampled_from([Asked(), JSON, SCHEMA, TOOLS]))
def test_any_pair_is_measured_between_minus_one_and_one(
    candidate: Answer, primary: Answer, again: Answer | None, asked: Asked
) -> None:
    for check in CHECKS.values():
        found = check.measure(pair(candidate, primary, again, asked))
        assert found is None or -1 <= found <= 1, check.name


@given(answers, answers, st.sampled_from([Asked(), JSON, SCHEMA, TOOLS]))
def test_a_candidate_that_answers_as_the_primary_does_again_differs_in_nothing(
    answer: Answer, primary: Answer, asked: Asked
) -> None:
    for check in CHECKS.values():
        if check.needs_self:
            assert check.measure(pair(answer, primary, answer, asked)) in (None, 0.0)


@given(st.floats(0.26, 3.9))
def test_a_ratio_is_read_as_it_was_written(ratio: float) -> None:
    assert times(longer(ratio, 1.0) or 0.0) == pytest.approx(ratio)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("ann.lee+x@mail.example.org", ["e-mail address"]),
        ("card 4111 1111 1111 1111", ["payment card"]),
        ("card 4111 1111 1111 1112", []),
        ("0000 0000 0000 0000", []),
        ("IBAN DE89 3704 0044 0532 0130 00.", ["IBAN"]),
        ("IBAN DE88 3704 0044 0532 0130 00.", []),
        ("078-05-1120", ["US social security number"]),
        ("000-05-1120", []),
        ("call +49 30 901820 now", ["phone number"]),
        ("1 + 2 = 3, pi is 3.14159265358979, on 2026-03-01", []),
    ],
)
def test_personal_data_is_what_its_own_digits_bear_out(text: str, kinds: list[str]) -> None:
    assert Guard().seen(pair(said(text))) == Seen(candidate=tuple(kinds))


def test_an_operators_pattern_that_takes_too_long_says_nothing_and_holds_nobody_up() -> None:
    guard = Guard.of({"nested": r"(a|aa)+$"})
    slow = pair(said("a" * 10_000 + "b"))
    assert guard.guardrail(slow) is None
    assert list(guard.seen(slow).named) == [TOO_SLOW]
    assert guard.guardrail(pair(said("baa"))) == 1.0


def test_each_answer_of_a_pair_counts_with_the_names_of_all_that_it_holds() -> None:
    guard = Guard.of({"codename": r"(?i)\bproject x\b"})
    seen = guard.seen(pair(said("Project X: ann@example.org"), said("project x")))
    assert list(seen.named) == [
        "primary: codename",
        "candidate: e-mail address",
        "candidate: codename",
    ]


@pytest.mark.parametrize(
    ("body", "asked"),
    [
        ({}, Asked()),
        ({"response_format": {"type": "json_object"}}, JSON),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": {"a": 1}}}},
            Asked(json=True, schema={"a": 1}),
        ),
        ({"tools": [{"function": {"name": "time"}}, 3]}, Asked(tools={"time": {}})),
        ({"response_format": "json", "tools": "time"}, Asked()),
    ],
)
def test_what_was_asked_for_is_read_from_the_request(body: dict[str, Any], asked: Asked) -> None:
    assert Asked.of(body) == asked
