"""How items of the native inbox reach their listeners."""

from __future__ import annotations

import logging
from typing import Any, cast

import pytest

from penstock.replica.calls.inbox import Inbox, Kind


class Drained:
    """A native inbox with these items in it."""

    def __init__(self, *items: tuple[int, int, bytes]) -> None:
        self._items = list(items)

    def drain(self) -> list[tuple[int, int, bytes]]:
        return self._items


def inbox_with(*items: tuple[int, int, bytes]) -> Inbox:
    inbox = Inbox()
    inbox.native = cast("Any", Drained(*items))
    return inbox


def test_an_item_that_breaks_its_listener_costs_the_others_nothing() -> None:
    inbox = inbox_with((Kind.START, 1, b""), (Kind.START, 2, b""))
    heard: list[int] = []

    def listener(key: int, _: bytes) -> None:
        if key == 1:
            raise RuntimeError("a bug")
        heard.append(key)

    inbox.listen(Kind.START, listener)
    inbox._read()
    assert heard == [2]


def test_what_the_native_side_has_to_say_stands_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    inbox_with((Kind.NOTICE, 0, b"the session of x is ended: y"))._read()
    assert "the session of x is ended: y" in caplog.text
