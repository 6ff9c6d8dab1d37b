"""Routes that cost nothing until somebody asks for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi.routing import APIRoute
from starlette.routing import compile_path


class DeferredRoute(APIRoute):
    """A route that FastAPI reads the handler's types for when it is first asked for, or described.

    To read those of all routes takes more than a tenth of a second of each head's start, and a few
    milliseconds for the one that a request wants.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **told: Any) -> None:
        """Keeps what a request is matched by, and the rest as it was told."""
        self.path, self.endpoint = path, endpoint
        self.path_regex, self.path_format, self.param_convertors = compile_path(path)
        self.methods = set(told["methods"])
        self._told = told

    def __getattr__(self, name: str) -> Any:
        """Makes the route, when the first of what it has beside that is looked at."""
        told = vars(self).pop("_told", None)
        if told is None:
            raise AttributeError(f"a route has no {name!r}")
        super().__init__(self.path, self.endpoint, **told)
        return getattr(self, name)
