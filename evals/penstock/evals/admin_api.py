"""The head's admin REST API, as an operator's script calls it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import httpx

from penstock.evals.endpoint import request
from penstock.evals.errors import EvalError


@dataclass(frozen=True, slots=True)
class AdminApi:
    """The admin API at an address, with a token that may do what is asked of it."""

    url: str
    token: str = field(repr=False)

    def get(self, path: str) -> Any:
        """What is there. Raises `EvalError`: while a head starts that is no news."""
        return self._call("GET", path)

    def post(self, path: str, body: object) -> Any:
        """Makes something new. Raises `EvalError`."""
        return self._call("POST", path, body)

    def put(self, path: str, body: object) -> Any:
        """Puts something in its place. Raises `EvalError`."""
        return self._call("PUT", path, body)

    def _call(self, method: str, path: str, body: object = None) -> Any:
        url = f"{self.url.rstrip('/')}/admin/v1/{path}"
        try:
            reply = request(method, url, self.token, timeout=30, body=body)
        except httpx.HTTPError as error:
            raise EvalError(f"{method} {url}: no answer: {error!r}") from error
        if not reply.is_success:
            raise EvalError(f"{method} {url}: {reply.status_code} {reply.text[:300]}")
        if not reply.content:
            return None
        try:
            return reply.json()
        except ValueError as error:
            raise EvalError(f"{method} {url}: answered with no JSON") from error
