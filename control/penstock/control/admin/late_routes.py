"""Routes that are made when somebody first asks below their paths: FastAPI takes milliseconds for
each, and to make a hundred of them is a third of a head's start."""

from __future__ import annotations

from collections.abc import Callable, Collection

from fastapi import APIRouter
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Receive, Scope, Send

ROOT = "/admin/v1/"


class LateRoutes(BaseRoute):
    """Holds the place of routes that are yet to be made.

    `below`: the words that follow `ROOT` in their paths.
    """

    def __init__(self, below: Collection[str], make: Callable[[], APIRouter]) -> None:
        self.below = below
        self.make = make

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Answers nothing by itself."""
        return Match.NONE, {}


class RoutesOnDemand:
    """ASGI middleware that has the routes of a request made before it is routed."""

    def __init__(self, app: ASGIApp, routes: list[BaseRoute]) -> None:
        self._app = app
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hands the request on."""
        path = str(scope.get("path", ""))
        if path.startswith(ROOT):
            make_routes(self._routes, path.removeprefix(ROOT).partition("/")[0])
        await self._app(scope, receive, send)


def make_routes(routes: list[BaseRoute], below: str | None = None) -> None:
    """Puts those that begin with this word, or all, in the places that are held for them."""
    late = [each for each in routes if isinstance(each, LateRoutes)]
    for each in late:
        if below is None or below in each.below:
            place = routes.index(each)
            routes[place : place + 1] = each.make().routes
