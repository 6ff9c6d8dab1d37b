"""The reports: JSON of its schema, Markdown and a page that no answer can break out of."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock.evals.adapter_regression as package
from penstock.evals.adapter_regression.document import Run, as_dict
from penstock.evals.adapter_regression.markdown import as_markdown
from penstock.evals.adapter_regression.page import as_page
from penstock.evals.adapter_regression.scores import Answer
from penstock.evals.comparison.page_texts import LONGEST, shown
from penstock.evals.comparison.text import cell, fenced
from tests.evals.adapter_regression.examples import bad, dataset, good, greetings, none, run_of

SCHEMA = json.loads(Path(package.__file__).with_name("report.schema.json").read_text())
HOSTILE = "</div></section><script>alert(1)</script><img src=x onerror=alert(2)> \u202e ````\n# no"


def mixed() -> Run:
    """Wins, losses, ties and errors on both sides."""
    of = [good, bad, none, good]
    to = [bad, good, good, none]
    return run_of(greetings(40), lambda n: of[n % 4](n), lambda n: to[n % 4](n))


@pytest.mark.parametrize(
    "run",
    [mixed(), run_of(greetings(1), none, none), run_of(greetings(30), good, good)],
    ids=["mixed", "nothing", "alike"],
)
def test_every_report_can_be_made_and_its_json_is_of_its_schema(run: Run) -> None:
    report = json.loads(json.dumps(as_dict(run)))
    jsonschema.validate(report, SCHEMA)
    assert report["verdict"]["result"] == run.verdict.result
    assert as_markdown(run).startswith("## ")
    assert as_page(run).endswith("</html>\n")


def test_the_titles_say_what_was_found() -> None:
    page = as_page(mixed())
    assert "Fail: pirate@2, compared with pirate@1, misses 2 of 3 thresholds" in page
    assert "Of 30 prompts pirate@2 won 10, lost 20 and tied none" in page
    assert "Its mean score is 0.33 lower" in page
    assert "20 prompts lost, the worst 10 of them here" in page
    assert "10 prompts set the two apart" not in page


def test_a_pass_says_so_first() -> None:
    run = run_of(greetings(40), good, good)
    for text in (as_markdown(run), as_page(run)):
        assert "Pass: pirate@2, compared with pirate@1, meets all 3 thresholds" in text
        assert "lost none" in text


def test_a_loss_shows_what_the_other_answer_has_and_this_one_lacks() -> None:
    page = as_page(run_of(greetings(20), lambda n: Answer(f"Ahoy {n}"), good))
    assert "<mark>Ahoy</mark> 0" in page
    assert "<mark>Arr!</mark> 0" in page


class Tags(HTMLParser):
    """What a browser would make of a page, as far as it matters here."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}


def test_a_hostile_answer_stays_text() -> None:
    prompts = [
        {"id": f"h-{n}", "prompt": f"{n} {HOSTILE}", "reference": HOSTILE} for n in range(20)
    ]
    plain = Tags(as_page(run_of(greetings(20), bad, good)))
    run = run_of(dataset(*prompts), lambda n: Answer(f"{HOSTILE} x"), lambda n: Answer(HOSTILE))
    for page in (as_page(run), as_page(run_of(dataset(*prompts), none, lambda n: Answer(HOSTILE)))):
        tags = Tags(page)
        assert tags.names <= plain.names | {"i", "mark", "details", "summary"}
        assert not {name for name in tags.attributes if name.startswith(("on", "src", "href"))}
        assert "\u202e" not in page
        assert "<script" not in page


def test_the_page_asks_nobody_for_anything() -> None:
    page = as_page(mixed())
    assert "default-src &#x27;none&#x27;" in page
    assert not Tags(page).attributes & {"src", "href", "xlink:href", "action"}
    assert "url(" not in page
    assert "@import" not in page


@settings(deadline=None)
@given(st.text(max_size=80))
def test_no_text_leaves_its_place(text: str) -> None:
    assert "<" not in shown(text)
    block = fenced(text)
    fence = block.split("text\n", 1)[0]
    assert fence not in block[len(fence) : -len(fence)]
    assert "\n" not in cell(text)


def test_a_long_answer_is_cut_and_says_so() -> None:
    assert "[7 more characters]" in shown("a" * (LONGEST + 7))
    assert "[...]" in fenced("a" * 5000)
    run = run_of(greetings(20), lambda n: Answer("b " * 40_000), good)
    assert len(as_page(run)) < 400_000
