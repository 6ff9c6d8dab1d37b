"""What every verb that asks the head does: find the token, call, explain."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from penstock.control.data_dir import admin_token_path
from penstock.control.errors import Unavailable
from penstock.control.outside.admin_client import AdminClient, token_in

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Head:
    """Which head, and with which token."""

    admin: str  # host:port or URL
    data_dir: Path
    token_file: Path | None = None
    ca: Path | None = None

    @property
    def url(self) -> str:
        """Where its admin API is."""
        if "://" in self.admin:
            return self.admin
        return f"{'https' if self.ca else 'http'}://{self.admin}"

    def ask(self, question: Callable[[AdminClient], Awaitable[T]]) -> T:
        """The answer. Raises `PenstockError`."""
        return asyncio.run(self._ask(question))

    async def _ask(self, question: Callable[[AdminClient], Awaitable[T]]) -> T:
        token = token_in(self.token_file or admin_token_path(self.data_dir))
        async with AdminClient(self.url, token, ca=self.ca) as admin:
            try:
                return await question(admin)
            except Unavailable as error:
                if not str(error).startswith("no head answers"):
                    raise
                raise Unavailable(
                    f"{error}; start it with `penstock serve` or `penstock head`,"
                    " or name another one with --admin"
                ) from error
