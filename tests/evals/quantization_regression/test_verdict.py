"""From pairs to each slice's verdict, and the reports of what models said."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser

import pytest

from penstock.evals.comparison.gate import Result
from penstock.evals.comparison.pair import Answer, Mark, Pair
from penstock.evals.comparison.questions import Question
from penstock.evals.endpoint import Endpoint
from penstock.evals.quantization_regression.document import Run, as_dict
from penstock.evals.quantization_regression.markdown import as_markdown
from penstock.evals.quantization_regression.page import as_page
from penstock.evals.quantization_regression.thresholds import Held, thresholds
from penstock.evals.quantization_regression.verdict import judge
from penstock.evals.shadow_compare.asking import Asking, Line
from tests.evals.comparison.examples import failed, said

HOSTILE = "</div></section><script>alert(1)</script><img src=x onerror=alert(2)> \u202e ````\n# no"


def lines(count: int, part: str = "", session: str = "") -> list[Line]:
    """So many of a dataset."""
    asked = ({"role": "user", "content": f"Hi {HOSTILE}"},)
    return [Line(Question(f"{part or 'p'}-{n}", asked), session, part) for n in range(count)]


def pairs(
    of: Sequence[Line], candidate: Answer | None = None, log: float = -0.5, again: float = -0.5
) -> list[Pair]:
    """Their answers: the primary finds each of its four tokens as likely as exp(-0.5)."""
    return [
        Pair(
            id=line.question.id,
            primary=said(logprobs=[-0.5] * 4),
            candidate=replace(candidate or said(), logprobs=[log] * 4),
            again=said(logprobs=[again] * 4),
            session=line.session,
        )
        for line in of
    ]


def result_of(dataset: Sequence[Line], found: Sequence[Pair], held: Held | None = None) -> Result:
    """What it comes to."""
    return judge(dataset, found, held or Held(), seed=1).result


def test_a_pass_takes_as_many_prompts_as_its_limits_ask_for() -> None:
    found = {count: result_of(lines(count), pairs(lines(count))) for count in (19, 40, 110)}
    assert found == {
        19: Result.INCONCLUSIVE,
        40: Result.INCONCLUSIVE,
        110: Result.PASS,
    }


def test_a_distance_that_the_primary_has_from_itself_is_none() -> None:
    dataset, held = lines(100), thresholds({"max_perplexity": 4})
    assert result_of(dataset, pairs(dataset, log=-0.9), held) is Result.FAIL
    assert result_of(dataset, pairs(dataset, log=-0.9, again=-0.9), held) is Result.PASS


def test_a_slice_that_fails_fails_all_and_the_reasons_name_it() -> None:
    dataset = [*lines(200), *lines(100, "safety")]
    found = [*pairs(lines(200)), *pairs(lines(100, "safety"), said("I'm sorry, but no."))]
    held = thresholds({"max_refusal": 0.5})
    assert result_of(dataset, found, held) is Result.FAIL
    outcome = judge(dataset, found, held, seed=1)
    assert [each.name for each in outcome.slices] == ["all", "safety"]
    assert all(each.startswith("safety: Refusal (refuses)") for each in outcome.reasons)


def test_a_session_counts_once_and_what_is_marked_not_at_all() -> None:
    dataset = [*lines(3, session="s"), *lines(2, "x")]
    found = pairs(dataset)
    found[3] = replace(found[3], marks=frozenset([Mark.REFUSED]))
    everything = judge(dataset, found, Held(), seed=1).slices[0]
    assert [each.id for each in everything.pairs] == ["p-0", "x-1"]
    assert everything.left_out == {"refused": 1, "later of a session": 2}


def test_a_check_that_nobody_asked_for_is_in_nobodys_way_unless_it_was_declared() -> None:
    dataset = lines(100)
    assert result_of(dataset, pairs(dataset)) is Result.PASS  # none asks for JSON
    held = thresholds({"max_json": 0.05})
    assert result_of(dataset, pairs(dataset), held) is Result.INCONCLUSIVE


def test_a_primary_that_answers_little_passes_nobody() -> None:
    dataset = lines(200)
    found = [
        replace(each, primary=failed()) if n < 40 else each for n, each in enumerate(pairs(dataset))
    ]
    outcome = judge(dataset, found, Held(), seed=1)
    assert outcome.result is Result.INCONCLUSIVE
    assert "The baseline gave no answer to 20% of the prompts" in outcome.reasons[0]


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.found.add(tag)


@pytest.mark.parametrize("candidate", [said(HOSTILE), replace(failed(), error=HOSTILE), said("")])
def test_no_report_lets_a_models_text_out_of_its_place(candidate: Answer) -> None:
    dataset = [*lines(30), *lines(30, "safety")]
    found = pairs(dataset, candidate, log=-2)
    run = Run(
        datetime(2026, 3, 1, 12, 0, tzinfo=UTC),
        Asking(Endpoint("http://base.example", "base"), Endpoint("http://int8.example", "int8")),
        *(tuple(dataset), "questions.jsonl", "0" * 64, tuple(found), Held()),
        judge(dataset, found, Held(), seed=1),
    )
    page = _Tags()
    page.feed(as_page(run))
    assert not {"script", "img"} & page.found
    assert {"svg", "mark"} & page.found
    shown = as_markdown(run)
    assert "\u202e" not in shown
    assert "\n# no" not in shown.replace("\n```text", "") or "`````" in shown
    assert json.loads(json.dumps(as_dict(run)))["verdict"]["result"] == "fail"
