"""The head's admin REST API, as an operator's script calls it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx

from penstock.evals.errors import EvalError

PREFIX = "/admin/v1/"


@dataclass(frozen=True, slots=True)
class AdminApi:
    """The admin API at an address, with a token of role admin."""

    url: str
    token: str

    def get(self, path: str) -> Any:
        """What is listed there. Raises `httpx.HTTPError`: while a head starts that is no news."""
        return self._call("GET", path).raise_for_status().json()

    def post(self, path: str, body: object) -> Any:
        """Makes something new. Raises `EvalError`."""
        reply = self._call("POST", path, body)
        if not reply.is_success:
            raise EvalError(f"POST {path} at {self.url}: {reply.status_code} {reply.text[:300]}")
        return reply.json()

    def _call(self, method: str, path: str, body: object = None) -> httpx.Response:
        headers = {"authorization": f"Bearer {self.token}"}
        url = self.url + PREFIX + path
        return httpx.request(method, url, json=body, headers=headers, timeout=5, trust_env=False)
