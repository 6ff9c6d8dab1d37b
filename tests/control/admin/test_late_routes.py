"""Routes that are made when they are first asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from penstock.control.admin.late_routes import ROOT, LateRoutes, make_routes
from tests.control.admin.app_harness import Admin, running_admin


@pytest.fixture
async def admin() -> AsyncIterator[Admin]:
    async with running_admin() as admin:
        yield admin


def test_what_is_asked_for_is_made_and_nothing_else(admin: Admin) -> None:
    routes = admin.app.router.routes
    late = [each for each in routes if isinstance(each, LateRoutes)]
    make_routes(routes, "shadows")
    left = [each for each in routes if isinstance(each, LateRoutes)]
    assert {word for each in late if each not in left for word in each.below} == {"shadows"}


def test_routes_are_held_for_under_the_words_that_their_paths_begin_with(admin: Admin) -> None:
    late = [each for each in admin.app.router.routes if isinstance(each, LateRoutes)]
    for each in late:
        paths = [str(getattr(route, "path", "")) for route in each.make().routes]
        assert all(path.startswith(ROOT) for path in paths)
        words = {path.removeprefix(ROOT).partition("/")[0] for path in paths}
        assert words == set(each.below)
