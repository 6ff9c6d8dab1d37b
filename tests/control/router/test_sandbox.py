"""What a program costs that goes wrong, as a real process: itself, and nothing else."""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path

import pytest

from penstock.control.machine_logs.lines import time_of
from penstock.control.router.confine import version
from penstock.control.router.logs import OUTPUT_A_MINUTE
from penstock.control.router.process import UNBOUNDED
from penstock.control.router.program import BadProgram, digest_of, program_of
from penstock.control.shipped_programs import shipped_programs
from penstock.v1.router_pb2 import GatewayFrame
from tests.fakes.router_gateway import RouterGateway, RouterProcess, dialed, start_router

pytestmark = pytest.mark.processes

# Does what the request's session says, as Python; decides for the first engine.
DOES = """
kept = []
async def route(request, engines, stats):
    exec(request.session)
    return RouteDecision(engines[0])
"""


class Routers:
    """Starts processes of programs, and ends them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.started: list[RouterProcess] = []

    def start(self, text: str = "", **env: str) -> RouterProcess:
        """One for that text; for those that ship without."""
        words = []
        if text:
            file = self.folder / "program.py"
            file.write_text(text)
            words = ["--text", str(file), "--digest", digest_of(text)]
        self.started.append(start_router(self.folder, words, **env))
        return self.started[-1]

    async def dialed(
        self, process: RouterProcess, text: str
    ) -> AbstractAsyncContextManager[RouterGateway]:
        """A gateway before that process."""
        told = await process.told()
        return dialed(told["address"], digest_of(text), token=told["token"])


@pytest.fixture
def routers(tmp_path: Path) -> Iterator[Routers]:
    found = Routers(tmp_path)
    yield found
    for each in found.started:
        if each.child.poll() is None:
            os.killpg(each.child.pid, signal.SIGKILL)
        each.child.wait()


async def test_it_says_where_it_is_asked_to_its_own_user_alone(routers: Routers) -> None:
    process = routers.start()
    told = await process.told()
    assert told["digests"] == sorted(digest_of(text) for text in shipped_programs().values())
    assert told["pid"] == process.child.pid
    assert process.announced.stat().st_mode & 0o777 == 0o600
    async with await routers.dialed(process, shipped_programs()["data_parallel"]) as gateway:
        assert (await gateway.decides()).replica_id in ("a", "b")
    process.child.terminate()
    assert await process.ended() == 0


async def test_it_has_no_secrets_and_its_bounds(routers: Routers) -> None:
    process = routers.start(HF_TOKEN="secret", OPENAI_API_KEY="secret")
    await process.told()
    found = {
        limit: resource.prlimit(process.child.pid, limit)
        for limit in (resource.RLIMIT_DATA, resource.RLIMIT_CORE, resource.RLIMIT_NOFILE)
    }
    assert all(soft == hard for soft, hard in found.values())
    assert found[resource.RLIMIT_CORE][0] == 0
    text = "import os\nasync def route(request, engines, stats):\n    raise KeyError(*os.environ)\n"
    other = routers.start(text, HF_TOKEN="secret")
    process.announced.unlink()
    async with await routers.dialed(other, text) as gateway:
        assert "HF_TOKEN" not in (await gateway.decides()).detail


async def test_what_goes_wrong_in_one_request_is_that_requests_failure(routers: Routers) -> None:
    process = routers.start(DOES)
    async with await routers.dialed(process, DOES) as gateway:
        for deed, error in (
            ("while True: kept.append(bytes(8 << 20))", "MemoryError"),
            ("import socket\nwhile True: kept.append(socket.socket())", "Too many open files"),
            ("raise RuntimeError('no')", "RuntimeError: no"),
            ("import sys; sys.exit(4)", "SystemExit: 4"),
        ):
            failed = await gateway.decides(session=deed)
            assert failed.error == "raised"
            assert error in failed.detail
            after = await gateway.decides(session="kept.clear()")
            assert (after.replica_id, after.error) == ("a", "")


@pytest.mark.skipif(not version(), reason="a kernel without Landlock")
async def test_nothing_of_its_machine_but_its_python_is_open_to_it(
    routers: Routers, tmp_path_factory: pytest.TempPathFactory
) -> None:
    secret = tmp_path_factory.mktemp("elsewhere") / "cluster.token"
    secret.write_text("secret")
    process = routers.start(DOES)
    port = (await process.told())["address"].rpartition(":")[2]
    async with await routers.dialed(process, DOES) as gateway:
        for deed in (
            f"open('{secret}')",
            f"open('{secret}.new', 'w')",
            f"open('{process.announced}')",
            f"open('{process.announced}', 'w')",
            f"open('{process.announced.with_name('other.json')}', 'w')",
            "import os; os.execv('/bin/sh', ['sh'])",
            "import os; os.fork()",
            "import subprocess; subprocess.run(['true'])",
            f"import socket; socket.create_connection(('127.0.0.1', {port}), 1)",
            "import socket; socket.create_server(('127.0.0.1', 0))",
            f"import os; os.kill({os.getpid()}, 0)",
        ):
            assert "PermissionError" in (await gateway.decides(session=deed)).detail, deed
        after = await gateway.decides(session="import threading; threading.Thread().start()")
        assert not after.error
        after = await gateway.decides(session="import wave; open('/dev/null', 'w').write('x')")
    assert (after.replica_id, after.error) == ("a", "")


@pytest.mark.skipif(not version(), reason="a kernel without Landlock")
async def test_its_threads_may_no_more_than_it(
    routers: Routers, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """gRPC's own, too, which reach other machines for who asks them to."""
    secret = tmp_path_factory.mktemp("elsewhere") / "cluster.token"
    secret.write_text("secret")
    process = routers.start(DOES)
    await process.told()
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        elsewhere.settimeout(0)
        at = f"127.0.0.1:{elsewhere.getsockname()[1]}"
        reach = f"import grpc; kept.append(c := grpc.insecure_channel('{at}'))\n"
        reach += "grpc.channel_ready_future(c).result(1)"
        read = "from concurrent.futures import ThreadPoolExecutor as Threads\n"
        read += f"Threads().submit(open, '{secret}').result()"
        async with await routers.dialed(process, DOES) as gateway:
            assert "Timeout" in (await gateway.decides(session=reach)).detail
            assert "PermissionError" in (await gateway.decides(session=read)).detail
            said = []
            for each in Path(f"/proc/{process.child.pid}/task").iterdir():
                with suppress(OSError):  # it has ended meanwhile
                    said.append((each / "status").read_text())
        with pytest.raises(BlockingIOError):
            elsewhere.accept()
    assert len(said) > 2
    assert all("NoNewPrivs:\t1" in each and "Seccomp:\t2" in each for each in said)


async def test_what_it_prints_is_dropped_beyond_what_a_log_takes(routers: Routers) -> None:
    process = routers.start(DOES)
    async with await routers.dialed(process, DOES) as gateway:
        loud = await gateway.decides(session="for _ in range(1024): print('x' * (1 << 20))")
    assert (loud.replica_id, loud.error) == ("a", "")
    assert process.log.stat().st_size < OUTPUT_A_MINUTE + 4096
    assert "dropped for a minute" in process.log.read_text()


async def test_what_it_prints_and_logs_are_lines_as_all_processes_have(routers: Routers) -> None:
    process = routers.start(DOES)
    async with await routers.dialed(process, DOES) as gateway:
        await gateway.decides(session="print('a\\n  b', end=''); print()")
        await gateway.decides(session="import logging; logging.critical('%d of it', 3)")
        await gateway.decides(session="import sys; sys.stderr.write('odd\\n')")
        await gateway.decides(session="raise RuntimeError('no')")
    lines = [json.loads(line) for line in process.log.read_text().splitlines()]
    own = [line for line in lines if line["message"] != UNBOUNDED]
    assert [(line["level"], line["message"]) for line in own[:-1]] == [
        ("info", "a"),
        ("info", "  b"),
        ("error", "3 of it"),
        ("warning", "odd"),
    ]
    assert own[-1]["message"].startswith("the program failed: RuntimeError: no")
    assert own[-1]["request_id"] == "r4"
    assert all(time_of(json.dumps(line)) and line["process"] == "program" for line in lines)


async def test_one_that_never_yields_is_ended_with_where_it_stood(routers: Routers) -> None:
    process = routers.start(DOES)
    async with await routers.dialed(process, DOES) as gateway:
        await gateway.ask(session="while True: pass")
        assert await process.ended() == 1
    assert "in route" in process.log.read_text()


async def test_one_that_goes_on_when_it_is_cancelled_is_ended(routers: Routers) -> None:
    text = (
        "import asyncio\n"
        "USES = {'lookup'}\n"
        "async def route(request, engines, stats):\n"
        "    begun = asyncio.ensure_future(engines[0].lookup(request))\n"
        "    while True:\n"
        "        try: await asyncio.sleep(9)\n"
        "        except asyncio.CancelledError: pass\n"
    )
    process = routers.start(text)
    async with await routers.dialed(process, text) as gateway:
        asked = await gateway.ask()
        await gateway.stream.read()  # its call: it has begun
        await gateway.send(GatewayFrame(cancels=[asked]))
        assert await process.ended() == 1
    assert "the program goes on after request r1" in process.log.read_text()


async def test_a_text_that_is_no_program_ends_it_with_a_line(routers: Routers) -> None:
    process = routers.start("1 / 0\n")
    assert await process.ended() == 1
    said = "router: error: ZeroDivisionError: division by zero (line 1)"
    assert said in process.log.read_text()
    assert not process.announced.read_text()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def route(:\n", "SyntaxError: invalid syntax (line 1)"),
        ("import sys\nsys.exit(3)\n", "SystemExit: 3 (line 2)"),
        ("def route(a, b, c): ...\n", "it has no `async def route(request, engines, stats)`"),
        ("USES = {'fly'}\nasync def route(a, b, c): ...\n", "USES must be names of commit, lookup"),
    ],
)
def test_why_a_text_is_no_program_is_said_in_a_line(text: str, said: str) -> None:
    with pytest.raises(BadProgram) as wrong:
        program_of(text)
    assert str(wrong.value).startswith(said)


async def test_it_ends_with_the_agent_that_started_it(tmp_path: Path) -> None:
    agent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, asyncio; from pathlib import Path\n"
            "from tests.fakes.router_gateway import start_router\n"
            "p = start_router(Path(sys.argv[1])); asyncio.run(p.told())\n"
            "print(p.child.pid, flush=True); sys.stdin.read()",
            str(tmp_path),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert agent.stdout is not None
    pidfd = os.pidfd_open(int(agent.stdout.readline()))
    agent.kill()
    agent.communicate()
    assert select.select([pidfd], [], [], 20)[0], "it goes on"
    os.close(pidfd)
