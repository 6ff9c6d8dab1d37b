"""The head, which may not know the comparison, names the checks that there are."""

from __future__ import annotations

from penstock.control.state.shadow.spec import ASKED, CHECKS
from penstock.evals.comparison.rules import rules


def test_the_admin_api_takes_the_names_of_all_checks_that_can_be_made() -> None:
    known = {each.name for each in rules().checks}
    assert known == {*CHECKS, *ASKED}
