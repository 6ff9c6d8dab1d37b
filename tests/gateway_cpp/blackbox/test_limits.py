"""What one client may cost the others: memory, turns, descriptors, the status port."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.fakes.fake_replica import hang
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.raw_http import CHAT, chat, request

MIB = 1 << 20
CHUNKED = "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n"


def connect(port: int) -> socket.socket:
    """A plain blocking socket."""
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def pour(port: int, head: bytes, part: bytes, total: int) -> bytes:
    """Sends `head` and then `part` again and again, and returns what came back until the end."""
    with connect(port) as link:
        link.sendall(head)
        try:
            for _ in range(total // len(part)):
                link.sendall(part)
        except ConnectionError:
            pass  # the gateway has had enough
        answer = b""
        try:
            while data := link.recv(65536):
                answer += data
        except ConnectionError:
            pass
        return answer


@pytest.mark.parametrize(
    "start_of_it",
    [b"5;", b"5;a=" + b"b" * 100, b"0", b"0\r\nX: ", b"0\r\n"],
    ids=["extension", "begun extension", "zeros of a size", "trailer", "trailers"],
)
async def test_framing_without_end_costs_no_memory(system: System, start_of_it: bytes) -> None:
    part = b"X: y\r\n" * 10_000 if start_of_it == b"0\r\n" else b"0" * 60_000
    before = system.gateway.resident_bytes()
    head = request(headers=CHUNKED) + start_of_it
    answer = await asyncio.to_thread(pour, system.gateway.port, head, part, 64 * MIB)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert system.gateway.resident_bytes() - before < 8 * MIB


async def test_many_small_extensions_are_bounded_together(system: System) -> None:
    chunk = b"1;" + b"e" * 200 + b"\r\n \r\n"
    head = request(headers=CHUNKED)
    answer = await asyncio.to_thread(pour, system.gateway.port, head, chunk * 100, 8 * MIB)
    assert answer.startswith(b"HTTP/1.1 400 ")


@contextmanager
def flooding(port: int, data: bytes) -> Iterator[None]:
    """One client sends `data` again and again and throws away what comes, as fast as it goes."""
    with connect(port) as link:
        over = threading.Event()

        def send() -> None:
            while not over.is_set():
                try:
                    link.sendall(data)
                except OSError:
                    return

        def receive() -> None:
            try:
                while not over.is_set() and link.recv(1 << 20):
                    pass
            except OSError:
                return

        threads = [threading.Thread(target=work) for work in (send, receive)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            over.set()
            link.shutdown(socket.SHUT_RDWR)
            for thread in threads:
                thread.join()


@pytest.mark.parametrize("path", ["/livez", "/v1/models", "/nothing"])
async def test_pipelined_requests_leave_others_their_turn(start: Start, path: str) -> None:
    system = await start("--threads", "1")
    with flooding(system.gateway.port, request("GET", path) * 2_000):
        began = time.monotonic()
        for _ in range(20):
            assert (await system.ask(request("GET", "/livez"))).status == 200
        # Most of it is what this process takes to make connections beside the flood.
        assert time.monotonic() - began < 5


async def test_a_body_without_end_leaves_others_their_turn(start: Start) -> None:
    system = await start("--threads", "1", "--body-limit-bytes", str(1 << 30))
    body = request(headers="Content-Type: application/json\r\nContent-Length: 1000000000\r\n")
    with flooding(system.gateway.port, b" " * MIB), connect(system.gateway.port) as upload:
        upload.sendall(body)
        for _ in range(20):
            upload.sendall(b" " * MIB)
            assert (await system.ask(request("GET", "/livez"))).status == 200


def stalled_upload(port: int, size: int) -> socket.socket:
    """A client that has sent all of its body but the last byte."""
    link = connect(port)
    head = f"Content-Type: application/json\r\nContent-Length: {size + 1}\r\n"
    link.sendall(request(headers=head) + b" " * size)
    return link


async def test_bodies_in_flight_are_bounded_over_all_connections(start: Start) -> None:
    flags = ("--body-budget-bytes", str(32 * MIB), "--body-timeout-ms", "1500")
    system = await start(*flags)
    before = system.gateway.resident_bytes()
    body = json.dumps(CHAT | {"x": "y" * (4 * MIB)}).encode()
    with ExitStack() as stack:
        links = [socket.socket() for _ in range(30)]
        for link in links:
            stack.enter_context(link)
            link.connect(("127.0.0.1", system.gateway.port))
            link.setblocking(False)
            head = f"Content-Type: application/json\r\nContent-Length: {15 * MIB}\r\n"
            link.send(request(headers=head))
        most = 0
        pending = set(links)
        deadline = time.monotonic() + 1.2
        while pending and time.monotonic() < deadline:
            for link in list(pending):
                try:
                    link.send(b" " * MIB)
                except BlockingIOError:
                    continue
                except OSError:
                    pending.discard(link)
            most = max(most, system.gateway.resident_bytes())
            await asyncio.sleep(0)
        assert most - before < 64 * MIB
        refused = await system.ask(request(body=body))
        assert refused.status in (200, 429, 503)
    # All the others have left or were refused: there is room again.
    async with asyncio.timeout(20):
        while (await system.ask(request(body=body))).status != 200:
            continue


async def test_a_body_that_finds_no_room_in_time_is_503_with_a_time_to_come_back(
    start: Start,
) -> None:
    flags = ("--body-limit-bytes", str(MIB), "--body-budget-bytes", str(MIB))
    system = await start(*flags, "--body-timeout-ms", "1000", scripts=(hang,))
    big = json.dumps(CHAT | {"x": "y" * (MIB * 3 // 4)}).encode()
    async with system.client() as holder, system.client() as late:
        await holder.send(request(body=big))
        await until(lambda: system.replicas[0].calls, "the first body is with a replica")
        # Held until the replica begins to answer: another replica might need it.
        await late.send(request(body=big))
        refused = await late.response()
        assert refused.status == 503
        assert refused.error["code"] == "overloaded"
        assert int(refused.headers["retry-after"]) >= 1
        assert (await system.ask(request("GET", "/livez"))).status == 200


async def test_the_status_port_answers_whatever_clients_do(start: Start) -> None:
    system = await start("--threads", "1", "--max-connections", "4", scripts=(hang,))
    with ExitStack() as stack:
        for _ in range(40):
            link = stack.enter_context(connect(system.gateway.port))
            link.sendall(chat())
        await until(lambda: system.replicas[0].calls, "some are busy")
        for path in ("/livez", "/readyz", "/metrics"):
            assert (await system.ask_status(path)).status == 200
    for path in ("/v1/models", "/v1/chat/completions", "/"):
        assert (await system.ask_status(path)).status in (404, 405)


async def test_metrics_are_not_for_clients_and_it_is_said_where_they_are(system: System) -> None:
    answer = await system.ask(request("GET", "/metrics"))
    assert answer.status == 404
    assert "127.0.0.1:0" in answer.error["message"] or "metrics" in answer.error["message"]


def cpu_seconds(pid: int) -> float:
    """What the process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


async def test_out_of_descriptors_it_neither_spins_nor_dies(start: Start) -> None:
    system = await start("--threads", "1", scripts=(hang,))
    pid = system.gateway.pid
    used = system.gateway.open_files()
    with ExitStack() as stack:
        # Not even the spare one can be had again: whatever is opened, the system says EMFILE.
        limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (used - 4, limits[1]))
        links = [stack.enter_context(connect(system.gateway.port)) for _ in range(100)]
        before = cpu_seconds(pid)
        await asyncio.sleep(1)
        assert cpu_seconds(pid) - before < 0.5
        assert links
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
    assert (await system.ask(request("GET", "/livez"))).status == 200


async def test_400_busy_clients_at_256_descriptors_leave_a_working_gateway(start: Start) -> None:
    system = await start("--threads", "1", scripts=(hang,))
    pid = system.gateway.pid
    hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)[1]
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (256, hard))
    with ExitStack() as stack:
        for _ in range(400):
            link = stack.enter_context(connect(system.gateway.port))
            link.sendall(chat())
        await until(lambda: len(system.replicas[0].calls) >= 50, "many have a call")
        before = cpu_seconds(pid)
        await asyncio.sleep(1)
        assert cpu_seconds(pid) - before < 0.5
    await until(lambda: len(os.listdir(f"/proc/{pid}/fd")) < 200, "it has descriptors to spare")
    assert (await system.ask(request("GET", "/livez"))).status == 200
