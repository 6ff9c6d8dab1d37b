"""An agent's calls for adapters, against real servers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest

from penstock.control.errors import NotFound, TokenRefused, Unavailable
from penstock.control.outside.dialer import Dialer
from penstock.control.outside.head_client import HeadClient
from penstock.v1 import nodes_pb2, nodes_pb2_grpc

PIECES = [nodes_pb2.AdapterPiece(file="f", data=b"1"), nodes_pb2.AdapterPiece(data=b"2")]


class Head(nodes_pb2_grpc.NodesServicer):
    """Sends two pieces, then ends with `code`."""

    def __init__(self, code: grpc.StatusCode) -> None:
        self.code = code

    async def FetchAdapter(
        self, request: nodes_pb2.FetchAdapterRequest, context: Any
    ) -> AsyncIterator[nodes_pb2.AdapterPiece]:
        for piece in PIECES:
            yield piece
        if self.code is not grpc.StatusCode.OK:
            await context.abort(self.code, "no more")


@asynccontextmanager
async def client_of(head: nodes_pb2_grpc.NodesServicer) -> AsyncIterator[HeadClient]:
    server = grpc.aio.server()
    nodes_pb2_grpc.add_NodesServicer_to_server(head, server)  # type: ignore[no-untyped-call]
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with HeadClient(f"127.0.0.1:{port}", Dialer()) as client:
        yield client
    await server.stop(None)


async def test_pieces_come_in_order() -> None:
    async with client_of(Head(grpc.StatusCode.OK)) as client:
        assert [piece async for piece in client.fetch_adapter("a")] == PIECES


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (grpc.StatusCode.NOT_FOUND, NotFound),
        (grpc.StatusCode.UNAVAILABLE, Unavailable),
        (grpc.StatusCode.INTERNAL, Unavailable),
        (grpc.StatusCode.UNAUTHENTICATED, TokenRefused),
    ],
)
async def test_an_end_that_is_none_says_why(code: grpc.StatusCode, kind: type[Exception]) -> None:
    async with client_of(Head(code)) as client:
        pieces = client.fetch_adapter("a")
        assert [await anext(pieces), await anext(pieces)] == PIECES
        with pytest.raises(kind, match="no more") as caught:
            await anext(pieces)
    assert caught.type is kind


async def test_a_head_that_hands_out_no_adapters_is_told() -> None:
    async with client_of(nodes_pb2_grpc.NodesServicer()) as client:
        with pytest.raises(Unavailable, match="UNIMPLEMENTED"):
            _ = [piece async for piece in client.fetch_adapter("a")]


async def test_a_head_that_is_away_is_told() -> None:
    async with client_of(Head(grpc.StatusCode.OK)) as client:
        pass
    async with HeadClient("127.0.0.1:1", Dialer()) as client:
        with pytest.raises(Unavailable, match=r"head at 127\.0\.0\.1:1"):
            _ = [piece async for piece in client.fetch_adapter("a")]
