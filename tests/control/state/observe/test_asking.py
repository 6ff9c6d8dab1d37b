"""Places of records over several gateways, and pages of what these say."""

from __future__ import annotations

import pytest

from penstock.control.errors import InvalidInput
from penstock.control.state.observe.asking import KeptRecords, Place, page_of
from penstock.control.state.observe.record import RequestRecord


def told(*at: int, more: bool = False) -> KeptRecords:
    return KeptRecords(tuple(RequestRecord(f"req_{us}", received_us=us) for us in at), more=more)


@pytest.mark.parametrize(
    "place", [Place(0, ""), Place(1_767_355_200_000_001, "req_a/b"), Place(5, "ü")]
)
def test_a_place_is_what_its_text_says(place: Place) -> None:
    assert Place.of(place.text) == place
    assert place.text.replace("-", "").replace("_", "").isalnum()


@pytest.mark.parametrize(
    "text", ["", "?", "req_1", "LTEvYQ", "ü", "OTk5OTk5OTk5OTk5OTk5OTk5OTk5Lw"]
)
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="which no page of this list ended with"):
        Place.of(text)


def test_what_is_older_than_the_last_of_one_that_has_more_waits_for_the_next_page() -> None:
    page = page_of([("a", told(90, 80, more=True)), ("b", told(85, 70))], 2, None)
    assert [each.record.received_us for each in page.kept] == [90, 85]
    page = page_of([("a", told(90, 80, more=True)), ("b", told(70, 60))], 4, None)
    assert [each.record.received_us for each in page.kept] == [90, 80]
    assert page.next == Place(80, "req_80")


def test_one_that_tells_what_is_newer_than_asked_or_twice_leads_nobody_in_a_circle() -> None:
    after = Place(50, "req_50")
    page = page_of([("a", told(99, 98, more=True))], 2, after)
    assert (page.kept, page.next) == ([], None)
    page = page_of([("a", told(50, 50, more=True))], 2, after)
    assert (page.kept, page.next) == ([], Place(50, ""))
    assert Place(50, "").before_us == 50
    page = page_of([("a", told(9, 9, 9))], 2, None)
    assert len(page.kept) == 1
