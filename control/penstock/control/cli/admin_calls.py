"""What every verb that asks the head does: find the token, call, explain."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from math import ceil
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from penstock.control.data_dir import admin_token_path, announced
from penstock.control.errors import NoHeadAnswers, Unauthenticated, Unavailable, invalid_setting
from penstock.control.outside.admin_client import AdminClient, token_in
from penstock.control.settings import ADMIN_ADDRESS, reachable

HEAD_AWAY = timedelta(minutes=1)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Head:
    """Which head, and with which token."""

    admin: str | None  # host:port or URL; none: as the head on `data_dir` announced it
    data_dir: Path
    token_file: Path | None = None
    ca: Path | None = None
    as_json: bool = False  # what it says is for programs

    @property
    def url(self) -> str:
        """Where its admin API is."""
        if self.admin is not None and "://" in self.admin:
            _check_url(self.admin)
            return self.admin
        address = self.admin
        if address is None:
            address = announced(self.data_dir, "admin") or ADMIN_ADDRESS
        return f"{'https' if self.ca else 'http'}://{reachable(address, flag='--admin')}"

    def ask(self, question: Callable[[AdminClient], Awaitable[T]]) -> T:
        """The answer. Raises `PenstockError`."""
        return asyncio.run(self._ask(question))

    async def _ask(self, question: Callable[[AdminClient], Awaitable[T]]) -> T:
        file = self.token_file or admin_token_path(self.data_dir)
        async with AdminClient(self.url, token_in(file), ca=self.ca) as admin:
            try:
                return await question(admin)
            except NoHeadAnswers as error:
                raise NoHeadAnswers(
                    f"{error}; start it with `penstock serve` or `penstock head`,"
                    " or name another one with --admin"
                ) from error
            except Unauthenticated as error:
                raise Unauthenticated(
                    f"the head at {self.url} does not know the token in {file}, or it was revoked:"
                    " name the head's data directory with --data-dir, or a file with another token"
                    " by --admin-token-file"
                ) from error


async def patiently(ask: Callable[[], Awaitable[T]], every: timedelta) -> T:
    """The answer; a head that is started anew in between is waited for, asked `every` so often."""
    for _ in range(ceil(HEAD_AWAY / every)):
        try:
            return await ask()
        except Unavailable:
            await asyncio.sleep(every.total_seconds())
    return await ask()


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        if not parts.hostname or parts.port == 0:
            raise ValueError("it names no host")
    except ValueError as error:
        raise invalid_setting(
            f"--admin is {url!r}: it must be host:port or a URL, such as http://127.0.0.1:8081 "
            f"({error})"
        ) from error
