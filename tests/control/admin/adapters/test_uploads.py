"""Files that are sent along, and stop coming: told why, and nothing of them stays."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from starlette.requests import Request
from starlette.types import Message

from penstock.control.admin.adapters.bodies import pieces_of
from penstock.control.errors import Code
from tests.control.admin.app_harness import Admin, assert_problem, running_admin
from tests.fakes.control_errors import raises_code

URL = "/admin/v1/adapters"
TYPE = {"content-type": "multipart/form-data; boundary=edge"}
BEGUN = b'--edge\r\ncontent-disposition: form-data; name="archive"\r\n\r\n' + bytes(2 << 20)


@pytest.fixture
async def admin() -> AsyncIterator[Admin]:
    async with running_admin() as admin:
        yield admin


async def test_an_upload_that_the_end_of_the_head_cuts_off_is_to_be_sent_again(
    admin: Admin,
) -> None:
    half = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield BEGUN
        half.set()
        await asyncio.Event().wait()

    async with asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(admin.client.post(URL, content=body(), headers=TYPE))
        await half.wait()
        assert list(admin.services.adapter_scratch.iterdir())
        asking.cancel()  # as the server does with what is still under way in the end
    assert_problem(asking.result(), 503, "this head ends", "send it again")
    assert asking.result().headers["connection"] == "close"
    assert not list(admin.services.adapter_scratch.iterdir())


async def test_a_body_that_stops_coming_is_given_up() -> None:
    async def receive() -> Message:
        if messages:
            return messages.pop()
        await asyncio.Event().wait()
        raise AssertionError

    messages: list[Message] = [{"type": "http.request", "body": b"half", "more_body": True}]
    request = Request({"type": "http", "method": "POST", "headers": []}, receive)
    pieces = pieces_of(request, timedelta(milliseconds=20))
    assert await anext(pieces) == b"half"
    with raises_code(Code.BODY_TOO_SLOW, match="nothing came of the body"):
        await anext(pieces)
