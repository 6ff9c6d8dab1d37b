"""Bodies in gzip: the replica gets them unpacked, and a bomb costs nobody but its sender."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
import zlib

import pytest

from tests.fakes.fake_replica import hello
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.raw_http import CHAT, request
from tests.gateway_cpp.blackbox.test_large_bodies import watching
from tests.gateway_cpp.blackbox.test_limits import MIB

BODY = json.dumps(CHAT).encode()
PACKED = gzip.compress(BODY)
GZIP = "Content-Encoding: gzip\r\n"


def packed(body: bytes = BODY, coding: str = "gzip", data: bytes | None = None) -> bytes:
    """A chat request in gzip; `data`: what its body is instead."""
    headers = f"Content-Encoding: {coding}\r\n"
    return request(body=gzip.compress(body) if data is None else data, headers=headers)


def chunked(data: bytes, size: int) -> bytes:
    """A chat request in gzip whose bytes come in chunks of that size."""
    pieces = [data[i : i + size] for i in range(0, len(data), size)]
    body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    head = request(headers=f"{GZIP}Content-Type: application/json\r\n")
    return head.removesuffix(b"\r\n") + b"Transfer-Encoding: chunked\r\n\r\n" + body


def bomb(unpacked: int) -> bytes:
    """So many bytes of nothing, in a thousandth of them."""
    packer = zlib.compressobj(9, wbits=31)
    zeros = bytes(MIB)
    return b"".join(packer.compress(zeros) for _ in range(unpacked // MIB)) + packer.flush()


@pytest.mark.parametrize("coding", ["gzip", "x-gzip", "GZIP"])
async def test_the_replica_gets_a_packed_body_unpacked(system: System, coding: str) -> None:
    answer = await system.ask(packed(coding=coding))
    assert answer.status == 200
    assert system.replicas[0].calls[0].request.body == BODY


async def test_identity_packs_nothing(system: System) -> None:
    assert (
        await system.ask(request(body=BODY, headers="Content-Encoding: identity\r\n"))
    ).status == 200


async def test_a_connection_goes_on_after_packed_bodies(system: System) -> None:
    async with system.client() as client:
        await client.send(packed() + chunked(gzip.compress(BODY), 7) + request(body=BODY))
        assert [(await client.response()).status for _ in range(3)] == [200, 200, 200]
    assert {call.request.body for call in system.replicas[0].calls} == {BODY}


async def test_several_members_are_one_body(system: System) -> None:
    data = gzip.compress(BODY[:10]) + gzip.compress(b"") + gzip.compress(BODY[10:])
    assert (await system.ask(packed(data=data))).status == 200
    assert system.replicas[0].calls[0].request.body == BODY


async def test_a_large_packed_body_arrives_whole_in_pieces_and_in_chunks(system: System) -> None:
    text = "".join(str(i * 7919) for i in range(400_000))
    body = json.dumps(CHAT | {"user": text}).encode()
    data = gzip.compress(body, 1)
    for ask in (packed(data=data), chunked(data, 999), chunked(data, 100_000)):
        assert (await system.ask(ask)).status == 200
    assert {call.request.body for call in system.replicas[0].calls} == {body}


NO_GZIP = {
    "without its last byte": (PACKED[:-1], "breaks off"),
    "half": (PACKED[: len(PACKED) // 2], "breaks off"),
    "with more behind it": (PACKED + b"more", "follow its end"),
    "with half a member behind it": (PACKED + PACKED[:9], "breaks off"),
    "not packed": (BODY, "header"),
    "packed by zlib": (zlib.compress(BODY), "header"),
    "with another checksum": (PACKED[:-8] + bytes(8), "data check"),
}


@pytest.mark.parametrize(("data", "says"), NO_GZIP.values(), ids=NO_GZIP.keys())
async def test_a_body_that_is_no_gzip_is_400_and_says_so(
    system: System, data: bytes, says: str
) -> None:
    for ask in (packed(data=data), chunked(data, 5)):
        answer = await system.ask(ask)
        assert answer.status == 400
        assert "Content-Encoding" in answer.error["message"]
        assert says in answer.error["message"]
    assert not system.replicas[0].calls


@pytest.mark.parametrize("coding", ["br", "deflate", "gzip, gzip", "zstd"])
async def test_another_coding_is_415_and_says_which_is_taken(system: System, coding: str) -> None:
    answer = await system.ask(packed(coding=coding))
    assert answer.status == 415
    assert answer.headers["accept-encoding"] == "gzip"
    assert coding in answer.error["message"]
    assert not system.replicas[0].calls


async def test_the_limit_is_for_the_unpacked_body(start: Start) -> None:
    system = await start("--body-limit-bytes", "100000")
    fits = BODY + b" " * (100_000 - len(BODY))
    assert (await system.ask(packed(fits))).status == 200
    for ask in (packed(fits + b" "), chunked(gzip.compress(fits + b" "), 50)):
        answer = await system.ask(ask)
        assert answer.status == 413
        assert "unpacks" in answer.error["message"]


MOST_OF_A_TURN = 0.5


async def longest_turn(system: System, data: bytes, status: int) -> float:
    """The longest that somebody else waited while this was read, as a share of all its time.

    The least of several tries: a busy machine makes some of them longer, a gateway that is held
    all of them.
    """
    shares = [1.0]
    while len(shares) <= 40 and min(shares) >= MOST_OF_A_TURN:
        with watching(system.gateway.port) as gaps:
            began = time.monotonic()
            assert (await system.ask(data)).status == status
            taken = time.monotonic() - began
        shares.append(gaps.longest / taken)
    return min(shares)


async def test_a_bomb_is_413_and_has_its_turns_like_others(start: Start) -> None:
    system = await start("--threads", "1", "--body-limit-bytes", str(128 * MIB))
    data = packed(data=bomb(256 * MIB))
    assert await longest_turn(system, data, 413) < MOST_OF_A_TURN


async def test_a_crowd_of_empty_members_is_refused_and_holds_nobody(start: Start) -> None:
    system = await start("--threads", "1")
    data = packed(data=gzip.compress(b"") * 400_000 + gzip.compress(BODY))
    assert await longest_turn(system, data, 400) < MOST_OF_A_TURN


async def test_many_bombs_at_once_hold_no_more_than_the_limit_each(start: Start) -> None:
    system = await start()
    data = packed(data=bomb(256 * MIB))
    before = system.gateway.resident_bytes()
    answers = await asyncio.gather(*(system.ask(data) for _ in range(20)))
    assert {answer.status for answer in answers} == {413}
    assert system.gateway.resident_bytes() - before < 20 * 32 * MIB


async def test_bombs_wait_for_the_budget_and_give_it_back(start: Start) -> None:
    system = await start(
        *("--body-budget-bytes", str(4 * MIB)),
        *("--body-limit-bytes", str(2 * MIB)),
        *("--body-timeout-ms", "20000"),
    )
    data = bomb(16 * MIB)
    answers = await asyncio.gather(*(system.ask(packed(data=data)) for _ in range(12)))
    assert {answer.status for answer in answers} <= {413, 429, 503}
    large = BODY + b" " * (2 * MIB - len(BODY))
    assert (await system.ask(packed(large))).status == 200
    assert (await system.ask(request(body=large))).status == 200


async def test_clients_that_leave_halfway_cost_nothing(start: Start) -> None:
    system = await start("--body-budget-bytes", str(20 * MIB), scripts=(hello,))
    half = packed(data=bomb(8 * MIB))[:-2000]
    files = system.gateway.open_files()
    for _ in range(40):
        async with system.client() as client:
            await client.send(half)
            client.leave()
    await until(lambda: system.gateway.open_files() <= files + 4, "all sockets are closed")
    large = BODY + b" " * (12 * MIB)
    # The last of them may just be taken and seen to leave: until then there is no room.
    while (answer := await system.ask(packed(large))).status != 200:
        assert answer.status in (429, 503)


async def test_a_packed_body_that_stalls_is_408(start: Start) -> None:
    system = await start("--body-timeout-ms", "300")
    answer = await system.ask(packed()[:-5])
    assert answer.status == 408
