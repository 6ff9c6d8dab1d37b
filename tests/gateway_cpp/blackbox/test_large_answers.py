"""A huge unary answer is held once, in a budget, until its client has read it."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from tests.fakes.fake_replica import FakeCall, unary_chat
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.raw_http import chat, request
from tests.gateway_cpp.blackbox.test_limits import MIB

ANSWER = b'{"data":"' + b"x" * (8 * MIB) + b'"}'
EMBED = request(path="/v1/embeddings", body=json.dumps({"model": "mini", "input": "hi"}).encode())
PART = 256 << 10


async def embed(call: FakeCall) -> None:
    """A large answer at /v1/embeddings, in parts as replicas send them; hello elsewhere."""
    body = ANSWER if call.request.path == "/v1/embeddings" else unary_chat("Hello")
    for at in range(0, len(body), PART):
        await call.send(body[at : at + PART])
    await call.finish()


@contextmanager
def readers_that_stand_still(system: System, count: int) -> Iterator[list[socket.socket]]:
    """Clients that have asked for a large answer and read nothing."""
    with ExitStack() as stack:
        links = [stack.enter_context(socket.socket()) for _ in range(count)]
        for link in links:
            link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            link.connect(("127.0.0.1", system.gateway.port))
            link.sendall(EMBED)
        yield links


def read_all(link: socket.socket) -> bytes:
    """All of one answer, with its head."""
    link.settimeout(20)
    got = bytearray()
    while not got.endswith(b"}") and (data := link.recv(1 << 20)):
        got += data
    return bytes(got)


def sent_all(system: System, count: int) -> bool:
    """Whether the replica has said all of so many answers."""
    return sum(call.sent_bytes == len(ANSWER) for call in system.replicas[0].calls) >= count


async def test_readers_that_stand_still_hold_each_answer_once(start: Start) -> None:
    system = await start(scripts=(embed,))
    before = system.gateway.resident_bytes()
    with readers_that_stand_still(system, 12) as links:
        await until(lambda: sent_all(system, 12), "all answers are made")
        assert (await system.ask(chat())).status == 200
        assert system.gateway.resident_bytes() - before < 12 * len(ANSWER) * 1.5
        for link in links:
            got = await asyncio.to_thread(read_all, link)
            assert got.startswith(b"HTTP/1.1 200 ")
            assert got.endswith(ANSWER)


async def test_answers_for_slow_readers_are_bounded_together_and_small_ones_still_come(
    start: Start,
) -> None:
    flags = ("--body-limit-bytes", str(MIB), "--body-budget-bytes", str(32 * MIB))
    system = await start(*flags, "--body-timeout-ms", "1000", scripts=(embed,))
    before = system.gateway.resident_bytes()
    with readers_that_stand_still(system, 20) as links:
        refused = {"status": 503, "error_code": "overloaded"}
        settled = "request settled"
        await until(lambda: system.gateway.find_log(settled, **refused), "some find no room")
        await until(lambda: sent_all(system, 1), "others do")
        assert system.gateway.resident_bytes() - before < 64 * MIB
        assert (await system.ask(chat())).status == 200
        answers = await asyncio.gather(*(asyncio.to_thread(read_all, link) for link in links))
    whole = [answer for answer in answers if answer.endswith(ANSWER)]
    assert whole
    assert all(b"overloaded" in answer for answer in answers if answer not in whole)
    assert (await system.ask(EMBED)).body == ANSWER
