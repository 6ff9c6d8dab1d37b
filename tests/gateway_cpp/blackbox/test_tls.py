"""HTTPS: certificates that change while it runs, and clients that never come to terms."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import ssl
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.fakes.fake_replica import DONE, FakeCall, delta
from tests.fakes.gateway_process import binary
from tests.fakes.waiting import until
from tests.gateway_cpp.blackbox.conftest import Start, System
from tests.gateway_cpp.blackbox.raw_http import chat, request
from tests.gateway_cpp.blackbox.wires import put_pair

pytestmark = pytest.mark.parametrize("wire", ["tls"], indirect=True)

HALF_OPEN = 1000
LIVEZ = request("GET", "/livez")


def make_pair(folder: Path) -> bytes:
    """A certificate that signs itself, its key, both in a new folder; the certificate in DER."""
    folder.mkdir()
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, folder.name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / "server.pem").write_bytes(made.public_bytes(pem))
    (folder / "server.key").write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return made.public_bytes(serialization.Encoding.DER)


def shown_certificate(port: int) -> bytes:
    """What a new client is shown, in DER."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with (
        socket.create_connection(("127.0.0.1", port), timeout=20) as link,
        context.wrap_socket(link) as secret,
    ):
        shown = secret.getpeercert(binary_form=True)
        assert shown is not None
        return shown


def client_hello() -> bytes:
    """What a client says first."""
    context = ssl.create_default_context()
    outgoing = ssl.MemoryBIO()
    secret = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        secret.do_handshake()
    return outgoing.read()


def read_all(link: socket.socket) -> bytes:
    """Everything up to the end of the connection."""
    data = b""
    try:
        while part := link.recv(65536):
            data += part
    except ConnectionResetError:
        return data
    return data


async def test_new_clients_see_the_new_certificate_and_old_ones_go_on(
    start: Start, tmp_path: Path
) -> None:
    go_on = asyncio.Event()

    async def two(call: FakeCall) -> None:
        await call.send(delta("one"))
        await go_on.wait()
        await call.send(DONE)
        await call.finish()

    system = await start(scripts=(two,))
    port = system.gateway.port
    async with system.client() as old:
        await old.send(chat(stream=True))
        await old.head()
        assert await old.chunk() == delta("one")
        made = make_pair(tmp_path / "new")
        put_pair(tmp_path / "new", tmp_path)
        await until(lambda: shown_certificate(port) == made, "the new certificate is shown")
        go_on.set()
        assert await old.chunk() == DONE
        assert await old.chunk() == b""
    assert system.gateway.count_log("TLS certificate in force") == 2


async def test_a_broken_pair_is_told_and_the_old_one_stays(start: Start, tmp_path: Path) -> None:
    system = await start()
    port = system.gateway.port
    first = shown_certificate(port)
    make_pair(tmp_path / "new")
    (tmp_path / "new" / "server.pem").write_bytes((tmp_path / "server.pem").read_bytes())
    put_pair(tmp_path / "new", tmp_path)
    told = "new TLS certificate is not usable: the old one stays"
    line = await until(lambda: system.gateway.find_log(told), "it is told")
    assert "is not the key of the certificate" in line["error"]
    assert shown_certificate(port) == first


async def test_a_hangup_reads_the_certificate_at_once_and_drains_nothing(start: Start) -> None:
    system = await start()
    os.kill(system.gateway.pid, signal.SIGHUP)
    in_force = "TLS certificate in force"
    await until(lambda: system.gateway.count_log(in_force) == 2, "it is read again")
    async with system.client() as client:
        assert (await client.ask(LIVEZ)).status == 200


async def test_plain_http_is_told_to_speak_https(start: Start) -> None:
    system = await start()
    with socket.create_connection(("127.0.0.1", system.gateway.port), timeout=20) as link:
        link.sendall(chat())
        answer = await asyncio.to_thread(read_all, link)
    assert answer.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"Begin the URL with https://" in answer


GARBAGE = {
    "no record": b"\x01\x02\x03 hello",
    "a record of nonsense": b"\x16\x03\x01\x00\x20" + b"\xff" * 32,
    "a record too long": b"\x16\x03\x01\xff\xff" + b"\x01" * 1000,
    "an alert": b"\x15\x03\x01\x00\x02\x02\x28",
    "half a hello and the end": client_hello()[:100],
    "a hello and nonsense": client_hello() + b"\x17\x03\x03\x00\x10" + b"x" * 16,
    "a hello twice": client_hello() * 2,
    "zeros": b"\x00" * 100_000,
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=list(GARBAGE))
async def test_a_garbled_handshake_costs_only_its_sender(start: Start, garbage: bytes) -> None:
    system = await start()
    async with system.client() as beside:
        with socket.create_connection(("127.0.0.1", system.gateway.port), timeout=20) as link:
            try:
                link.sendall(garbage)
                link.shutdown(socket.SHUT_WR)
            except OSError:
                assert len(garbage) > 1000, "the gateway had seen enough"
            answer = await asyncio.to_thread(read_all, link)
        assert not answer.startswith(b"HTTP")
        assert (await beside.ask(LIVEZ)).status == 200
        metrics = (await system.ask_status("/metrics")).body
    assert b"penstock_gateway_tls_handshakes_failed_total 1\n" in metrics


async def test_a_handshake_has_the_time_of_a_head(start: Start) -> None:
    system = await start("--header-timeout-ms", "300")
    with socket.create_connection(("127.0.0.1", system.gateway.port), timeout=20) as link:
        link.sendall(client_hello()[:50])
        assert await asyncio.to_thread(read_all, link) == b""


async def test_half_open_handshakes_hold_up_no_stream(start: Start) -> None:
    released = asyncio.Queue[None]()

    async def on_demand(call: FakeCall) -> None:
        while not call.cancelled.is_set():
            await released.get()
            await call.send(delta("x"))

    system = await start("--header-timeout-ms", "2000", scripts=(on_demand,))
    hello = client_hello()
    links = []
    loop = asyncio.get_running_loop()
    slowest = 0.0
    try:
        async with system.client() as stream:
            await stream.send(chat(stream=True))
            released.put_nowait(None)
            await stream.head()
            assert await stream.chunk() == delta("x")
            for number in range(HALF_OPEN):
                link = socket.create_connection(("127.0.0.1", system.gateway.port), timeout=20)
                links.append(link)
                link.sendall(hello if number % 2 else hello[:60])
                if number % 20 == 0:
                    began = loop.time()
                    released.put_nowait(None)
                    assert await stream.chunk() == delta("x")
                    slowest = max(slowest, loop.time() - began)
            await gone(system, HALF_OPEN)
        assert slowest < 2, "seconds for an event beside them"
    finally:
        for link in links:
            link.close()


async def gone(system: System, handshakes: int) -> None:
    """Waits until so many handshakes were given up."""
    line = f"penstock_gateway_tls_handshakes_failed_total {handshakes}\n".encode()
    async with asyncio.timeout(30):
        while line not in (await system.ask_status("/metrics")).body:
            await asyncio.sleep(0.1)


def start_error(*flags: str) -> str:
    """What a gateway says that does not start for its flags."""
    command = [str(binary()), "--listen", "127.0.0.1:0", "--data-dir", "/nowhere", *flags]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert ended.returncode == 2, ended.stderr
    return ended.stderr


def test_a_gateway_says_at_its_start_what_is_wrong_with_its_files(
    wire: object, tmp_path: Path
) -> None:
    make_pair(tmp_path / "a")
    cert, key = str(tmp_path / "a" / "server.pem"), str(tmp_path / "a" / "server.key")
    assert "--tls-cert is given without --tls-key" in start_error("--tls-cert", cert)
    Path(key).chmod(0o644)
    assert "every user of this machine can use it" in start_error(
        "--tls-cert", cert, "--tls-key", key
    )
    absent = str(tmp_path / "absent")
    assert f"--tls-cert: '{absent}' cannot be read" in start_error(
        "--tls-cert", absent, "--tls-key", key
    )
