"""A huge body costs its sender time, and nobody else: it is read beside the I/O threads."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.fakes.fake_replica import hello, refuse
from tests.gateway_cpp.blackbox.conftest import Start
from tests.gateway_cpp.blackbox.raw_http import CHAT, request
from tests.gateway_cpp.blackbox.test_limits import MIB, connect

SMALL_VALUES = b"1," * (7 * MIB) + b"1"  # what takes a parser longest


LONG_VALUES = b"0.12345678901234567890123456," * 499_900 + b"1"  # as many as one may send


def huge(model: str, values: bytes) -> bytes:
    """A request of some 14 MiB."""
    head = json.dumps(CHAT | {"model": model}).encode()
    return request(body=head[:-1] + b',"x":[' + values + b"]}")


def ask_alone(port: int, data: bytes) -> float:
    """Seconds from the body's last byte to the answer's first."""
    with connect(port) as link:
        link.sendall(data)
        sent = time.monotonic()
        assert link.recv(65536).startswith(b"HTTP/1.1 400")
        return time.monotonic() - sent


class Gaps:
    """The longest time that somebody else waited for an answer of no work."""

    def __init__(self) -> None:
        self.longest = 0.0

    def watch(self, port: int, over: threading.Event) -> None:
        """Asks again and again on one connection."""
        ask = request("GET", "/livez")
        with connect(port) as link:
            while not over.is_set():
                began = time.monotonic()
                link.sendall(ask)
                assert link.recv(65536).startswith(b"HTTP/1.1 200")
                self.longest = max(self.longest, time.monotonic() - began)


@contextmanager
def watching(port: int) -> Iterator[Gaps]:
    """Somebody else asks for as long as this lasts."""
    gaps, over = Gaps(), threading.Event()
    thread = threading.Thread(target=gaps.watch, args=(port, over))
    thread.start()
    try:
        yield gaps
    finally:
        over.set()
        thread.join()


async def test_a_huge_body_holds_up_nobody_while_it_is_read(start: Start) -> None:
    system = await start("--threads", "1")
    port, data = system.gateway.port, huge("mini", SMALL_VALUES)
    # On the I/O thread somebody else waits for as long as it takes, each time; a busy machine makes
    # only some of the waits longer.
    shares = [1.0]
    while len(shares) <= 20 and min(shares) >= 0.5:
        with watching(port) as gaps:
            taken = await asyncio.to_thread(ask_alone, port, data)
        shares.append(gaps.longest / taken)
    assert min(shares) < 0.5, shares


async def test_a_huge_body_arrives_whole_at_the_replica_that_is_tried_next(start: Start) -> None:
    busy = refuse(503, "overloaded", retry=True)
    system = await start("--threads", "1", "--body-values", "500000", scripts=(busy, hello))
    data = huge("mini", LONG_VALUES)
    asked = 0
    while not system.replicas[0].calls:  # which is tried first is chance
        assert (await system.ask(data)).status == 200
        asked += 1
    bodies = {bytes(call.request.body) for replica in system.replicas for call in replica.calls}
    assert bodies == {data.split(b"\r\n\r\n", 1)[1]}
    assert len(system.replicas[0].calls) == 1
    assert len(system.replicas[1].calls) == asked
