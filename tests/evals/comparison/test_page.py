"""The page: one file that needs nothing else, with every check and its plots."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from penstock.evals.comparison.page import as_page
from penstock.evals.comparison.report import Report, report
from penstock.evals.comparison.rules import rules
from penstock.evals.comparison.tally import Tally
from tests.evals.comparison.examples import failed, pair, said

STRANGER = '<script>alert("1")</script>'


class Tags(HTMLParser):
    """What tags and attributes a page holds."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.names: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.names |= {name for name, _ in attrs}


def compared(count: int) -> Report:
    """So many pairs, of which one in three has an error."""
    tally = Tally(rules())
    for number in range(count):
        tally.add(pair(said() if number % 3 else failed(), said(model=STRANGER), said()))
    return report(tally, STRANGER, "mini@2")


@pytest.mark.parametrize("count", [0, 1, 200])
def test_the_page_shows_every_check_and_runs_nothing(count: int) -> None:
    page = as_page(compared(count))
    found = Tags(page)
    assert not {"script", "link", "img", "iframe"} & set(found.tags)
    assert not {"src", "href", "onload", "onclick"} & found.names
    assert "&lt;script&gt;alert" in page
    for check in rules().checks:
        assert f'<div class="name">{check.name}<' in page


def test_a_check_that_was_made_has_two_plots_and_one_that_was_not_has_none() -> None:
    found = compared(200)
    made = sum(each.made for each in found.findings)
    assert Tags(as_page(found)).tags.count("svg") == 2 * made


def test_the_verdict_stands_at_the_top_with_its_reasons() -> None:
    page = as_page(compared(200))
    assert page.index('<header class="fail"><h1>Worse: mini@2') < page.index(
        "error (no whole answer)"
    )


def test_the_path_grows_slowly_and_ends_near_the_last_session() -> None:
    path = compared(200).findings[0].path
    assert [each[0] for each in path[:3]] == [1, 2, 3]
    assert 20 < len(path) < 50
    assert path[-1][0] > 180
    assert path[-1][1] > 1 > path[-1][2]
