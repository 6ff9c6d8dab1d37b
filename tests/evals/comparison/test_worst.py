"""The worst pairs in a report: few, cut, and nothing of theirs gets out of its place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

from penstock.evals.comparison.page import as_page
from penstock.evals.comparison.pair import Answer
from penstock.evals.comparison.recorded_pair import Said, as_dict
from penstock.evals.comparison.report import Report, as_markdown, report
from penstock.evals.comparison.report import as_dict as report_as_dict
from penstock.evals.comparison.rules import rules
from penstock.evals.comparison.tally import Tally
from penstock.evals.comparison.worst import LONGEST, Kept, Worst
from tests.evals.comparison.examples import called, failed, pair, said

SCRIPT = '<script>alert("1")</script>'


def told(body: Mapping[str, object], candidate: Answer) -> Said:
    return Said.of(json.loads(json.dumps(as_dict(body, pair(candidate)))))


def shown(text: str) -> Report:
    one = Said("req-1", text, text, text)
    return replace(
        report(Tally(rules()), "chat", "small"),
        kept=Kept(7, 2, {"too large": 3}, "no key", (Worst("error", 1.0, one),)),
    )


def test_of_a_conversation_the_last_message_is_shown() -> None:
    parts = [{"type": "text", "text": "And"}, {"type": "image_url"}, {"type": "text", "text": "?"}]
    body = {"messages": [{"role": "user", "content": "first"}, {"role": "user", "content": parts}]}
    assert told(body, said()).asked == "And\n?"
    assert told({"prompt": "Once"}, said()).asked == "Once"
    assert told({"messages": 7}, said()).asked == ""


def test_an_answer_is_shown_with_its_error_its_calls_and_that_it_was_cut() -> None:
    assert told({}, failed()).candidate == "error: 503 overloaded: come again"
    assert told({}, called("weather", '{"city": 1}')).candidate == 'weather({"city": 1})'
    assert told({}, said("Hel", "length")).candidate == "Hel\n[cut off by its length]"


def test_texts_are_cut_and_escaped() -> None:
    page = as_page(shown(SCRIPT))
    assert SCRIPT not in page
    assert page.count("&lt;script&gt;") == 3
    long = report_as_dict(shown("x" * 9 + "y" * LONGEST + "z" * 9))["records"]["worst"][0]
    assert (len(long["asked"]), len(long["candidate"])) == (LONGEST, LONGEST)
    assert (long["asked"][-9:], long["candidate"][:9]) == ("z" * 9, "x" * 9)


def test_a_text_does_not_leave_its_block_of_markdown() -> None:
    text = as_markdown(shown("```\n# out"))
    assert "````text\n```\n# out\n````" in text


def test_what_is_not_kept_is_told() -> None:
    for text in (as_page(shown("")), as_markdown(shown(""))):
        assert "Texts of 7 pairs are kept." in text
        assert "too large: 3." in text
        assert "Nothing is kept now: no key." in text
        assert "the key that they are under is not there: 2." in text


def test_nothing_of_it_is_there_where_nothing_is_recorded() -> None:
    plain = replace(shown(""), kept=None)
    assert "Worst pairs" not in as_page(plain) + as_markdown(plain)
    assert report_as_dict(plain)["records"] is None


def test_a_verdict_over_two_versions_says_so() -> None:
    tally = Tally(rules())
    for version in ("small 1", "small 1", "small 2"):
        tally.add(pair(said(model=version), said(model="chat 1")))
    tally.add(pair(failed(), said(model="chat 1")))
    tally = Tally.of(rules(), json.loads(json.dumps(tally.as_dict())))
    found = report(tally, "chat", "small")
    assert found.changes == (
        "The candidate changed meanwhile: 2 versions of it answered, and the verdict speaks of "
        "them together.",
    )
    assert found.changes[0] in found.reasons
    assert report_as_dict(found)["versions"] == {
        "primary chat 1": 4,
        "candidate small 1": 2,
        "candidate small 2": 1,
        "candidate unnamed": 0,
    }
