"""Connections to MicroServing's REST of those who never show a token."""

from __future__ import annotations

import asyncio

import pytest

from penstock.replica.engine_calls import rest_server
from penstock.replica.engine_calls.router_tokens import RouterTokens
from tests.fakes.waiting import until

_HALF = b"POST /microserving/v1/lookup HTTP/1.1\r\n"
_WHOLE = _HALF + b"host: x\r\ncontent-length: 9\r\n\r\n"  # and a body that never comes


@pytest.mark.parametrize("said", [b"", _HALF, _WHOLE, _WHOLE + bytes(9) + _HALF])
async def test_a_connection_that_begins_no_request_is_closed(
    said: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rest_server, "HEAD_WITHIN_S", 0.05)
    server = rest_server.RestServer("127.0.0.1:0", "127.0.0.1:1", "", RouterTokens())
    async with asyncio.TaskGroup() as tasks:
        serving = tasks.create_task(server.run_until_stopped())
        await until(lambda: server.started, "it serves")
        host, _, port = server.address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(said)
        answer = await asyncio.wait_for(reader.read(), 20)
        assert answer.startswith(b"HTTP/1.1 503" if _WHOLE in said else b"")
        writer.close()
        serving.cancel()
