"""Questions of the comparer on the stream on which a gateway's pairs come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from penstock.control.errors import Unavailable
from penstock.control.rpc.shadow_service import Ask, ShadowService
from penstock.v1 import shadow_pb2, shadow_pb2_grpc
from tests.fakes.control_waiting import eventually
from tests.fakes.fake_server import FakeServer
from tests.fakes.shadow_batches import answer, batch, pair


class Counting(FakeServer):
    """A service whose batches the test counts."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[shadow_pb2.ShadowBatch] = []
        self.asks: list[Ask] = []

    async def count(self, batch: shadow_pb2.ShadowBatch, ask: Ask) -> None:
        self.batches.append(batch)
        self.asks.append(ask)

    def _serve_on(self, server: grpc.aio.Server) -> None:
        shadow_pb2_grpc.add_ShadowServicer_to_server(  # type: ignore[no-untyped-call]
            ShadowService(self.count), server
        )


class Gateway:
    """A stream to the service."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        stub = shadow_pb2_grpc.ShadowStub(channel)  # type: ignore[no-untyped-call]
        self.stream: Any = stub.Record()

    async def hand_over(self, number: int) -> None:
        await self.stream.write(batch(number, [pair(number)]))
        assert (await self.stream.read()).number == number

    async def question(self) -> shadow_pb2.ShadowQuestion:
        message = await self.stream.read()
        assert message.number == 0, "it acknowledges nothing"
        (question,) = message.questions
        return question  # type: ignore[no-any-return]

    async def reply(self, number: str, text: str) -> None:
        told = shadow_pb2.ShadowReply(id=number, answer=answer(text))
        await self.stream.write(shadow_pb2.ShadowBatch(replies=[told]))


@pytest.fixture
async def served() -> AsyncIterator[Counting]:
    async with Counting() as made:
        yield made


@pytest.fixture
async def gateway(served: Counting) -> AsyncIterator[Gateway]:
    async with grpc.aio.insecure_channel(served.address) as channel:
        yield Gateway(channel)


def asked(of: str) -> shadow_pb2.ShadowQuestion:
    return shadow_pb2.ShadowQuestion(deployment=of)


async def test_a_gateway_replies_to_questions_in_whatever_order(
    served: Counting, gateway: Gateway
) -> None:
    await gateway.hand_over(1)
    ask = served.asks[0]
    async with asyncio.TaskGroup() as tasks:
        first = tasks.create_task(_reply_to(ask, "one"))
        second = tasks.create_task(_reply_to(ask, "two"))
        questions = [await gateway.question(), await gateway.question()]
        assert [each.deployment for each in questions] == ["one", "two"]
        await gateway.reply("of another stream", "nobody waits for it")
        for each in reversed(questions):
            await gateway.reply(each.id, f"to {each.deployment}")
    assert (b"to one" in (await first).answer.body, b"to two" in (await second).answer.body) == (
        True,
        True,
    )
    await gateway.hand_over(2)
    assert [each.number for each in served.batches] == [1, 2], "replies are not counted"


async def test_a_question_of_a_stream_that_ends_gets_no_reply(
    served: Counting, gateway: Gateway
) -> None:
    await gateway.hand_over(1)
    async with asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(_lost(served.asks[0]))
        await gateway.question()
        gateway.stream.cancel()
        assert "has ended" in await asking

    async def ended() -> bool:
        return "has ended" in await _lost(served.asks[0])

    await eventually(ended, "questions after its end are lost at once")


async def _reply_to(ask: Ask, of: str) -> shadow_pb2.ShadowReply:
    return await ask(asked(of))


async def _lost(ask: Ask) -> str:
    with pytest.raises(Unavailable) as caught:
        await ask(asked("big"))
    return str(caught.value)
