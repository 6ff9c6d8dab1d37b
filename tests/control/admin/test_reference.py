"""The page on the admin API says what its document says, and no route has less than its kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.control.admin.reference import HEAD, PAGE, page_of, routes_of

RENEW = ".venv/bin/python -m tests.control.admin.reference"
# Indexes of what happened, whose pages are objects: they tell where the next one begins.
OWN_PAGES = ("GET /audit", "GET /requests")


async def test_every_route_takes_what_its_kind_should(document: Mapping[str, Any]) -> None:
    routes = list(routes_of(document))
    assert len(routes) > 60
    missing = {each.name: each.missing for each in routes if each.missing}
    assert missing == {}, "admin/writes.py, admin/parameters.py and admin/auth.py have them"
    own = [each for each in routes if each.name in OWN_PAGES]
    assert [each.name for each in own if {"limit", "after"} <= each.parameters] == list(OWN_PAGES)


async def test_the_page_has_every_route(document: Mapping[str, Any]) -> None:
    page = PAGE.read_text()
    assert HEAD in page
    assert page == page_of(document, page), f"{PAGE} is to be renewed: {RENEW}"
