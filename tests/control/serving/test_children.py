"""The head and the node agent as children, with processes that only look like them."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from penstock.control.errors import CannotStart
from penstock.control.outside.clock import SystemClock
from penstock.control.outside.processes import ProcessLauncher
from penstock.control.serving.children import (
    Child,
    head_command,
    leftover_mark,
    node_command,
)
from penstock.control.serving.options import ServeOptions
from penstock.control.settings import GatewayTls, LogRetention
from penstock.control.trace_choice import TraceChoice
from tests.fakes.control_clock import ManualClock
from tests.fakes.control_launcher import FakeLauncher
from tests.fakes.waiting import until

# Runs until it is killed; the alarm is for a test run that is itself killed.
# Ctrl-C ends it as the kernel does: Python's own handler could run just before `pause`, in vain.
IDLE = (
    "import signal; signal.signal(signal.SIGINT, signal.SIG_DFL); signal.alarm(60);"
    "print('idle', flush=True); signal.pause()"
)
DEAF = (
    "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); signal.alarm(60);"
    "print('deaf', flush=True); signal.pause()"
)


def child(tmp_path: Path, script: str, told: list[str]) -> Child:
    argv = [sys.executable, "-c", script]
    head = Child("head", argv, tmp_path / "head.log", ProcessLauncher(), SystemClock(), told.append)
    head.begin()
    return head


@pytest.mark.processes
async def test_a_child_that_worked_is_started_again_when_it_dies(tmp_path: Path) -> None:
    told: list[str] = []
    head = child(tmp_path, IDLE, told)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(head.keep_running())
        await until(lambda: head.pid != 0, "the head runs")
        first = head.pid
        head.proven()
        os.kill(first, signal.SIGKILL)
        await until(lambda: head.pid not in (0, first), "another head runs")
        # A job in a shell's background ignores Ctrl-C, and its child does until it says otherwise.
        await until(lambda: "idle" in _text(head.log_path), "it can be stopped")
        running.cancel()
    await head.stop(timedelta(seconds=20))
    assert told == ["the head was killed by SIGKILL: started again"]


async def test_a_head_that_worked_is_started_again_only_on_the_store_that_it_had(
    tmp_path: Path,
) -> None:
    launcher, clock = FakeLauncher(), ManualClock()
    head = Child("head", ["head"], tmp_path / "log", launcher, clock, print, ("--existing-store",))
    await head.start()
    head.proven()
    await head.start()
    first, second = (process.argv for process in launcher.started)
    assert second == [*first, "--existing-store"]


async def test_a_head_that_is_started_again_does_not_take_over_again(
    tmp_path: Path,
) -> None:
    launcher = FakeLauncher()
    argv = head_command(ServeOptions("mini", "mini", tmp_path, take_over=True))
    head = Child("head", argv, tmp_path / "head.log", launcher, ManualClock(), print)
    await head.start()
    await head.start()
    first, second = (process.argv for process in launcher.started)
    assert first == [*second, "--take-over"]


@pytest.mark.processes
async def test_why_a_child_ended_is_told_in_its_own_words(tmp_path: Path) -> None:
    told: list[str] = []
    head = child(tmp_path, "raise SystemExit('penstock head: error: no room')", told)
    head.proven()
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(head.keep_running())
        await until(lambda: told != [], "something is told")
        running.cancel()
    assert told[0].startswith("the head exited with code 1")
    assert told[0].endswith(" (no room): started again")


@pytest.mark.processes
async def test_a_child_that_never_worked_ends_the_run_with_its_own_words(tmp_path: Path) -> None:
    script = (
        "import sys; print('penstock head: error: no gateway here', file=sys.stderr);"
        'print(\'{"message": "bye"}\'); sys.exit(1)'
    )
    with pytest.raises(CannotStart, match=r"^no gateway here$"):
        await child(tmp_path, script, []).keep_running()


@pytest.mark.processes
async def test_a_child_that_dies_without_words_is_described(tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match=r"the head exited with code 9 .*head\.log"):
        await child(tmp_path, "raise SystemExit(9)", []).keep_running()


@pytest.mark.processes
async def test_a_child_that_will_not_stop_is_waited_for_only_so_long(tmp_path: Path) -> None:
    told: list[str] = []
    head = child(tmp_path, DEAF, told)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(head.keep_running())
        await until(lambda: "deaf" in _text(head.log_path), "it is deaf")
        running.cancel()
    await head.stop(timedelta(seconds=0.1))
    assert told == ["the head did not stop in time"]
    os.kill(head.pid, signal.SIGKILL)


def test_the_commands_carry_what_was_wished() -> None:
    options = ServeOptions(
        "m",
        "mini",
        Path("/data"),
        gateway="0.0.0.0:1",
        rpc="0.0.0.0:3",
        gateway_threads=4,
        logs=LogRetention(0.5, 3),
    )
    head = " ".join(head_command(options)[1:])
    assert head.startswith("-m penstock.control.main head --data-dir /data --with-parent")
    assert "--gateway 0.0.0.0:1" in head
    assert "--gateway-threads 4" in head
    node = " ".join(node_command(options)[1:])
    assert node.startswith("-m penstock.control.main node --data-dir /data --with-parent")
    assert "--head 127.0.0.1:3" in node
    assert all("--node-id local" in command for command in (head, node))
    assert "--start-limit 1800 --adapter-cache-gib 20" in node
    assert "--log-keep-gib 0.5 --log-keep-days 3" in node
    assert "--log-keep-gib 0.5 --log-keep-days 3" in head
    unasked = {"--open", "--no-client-addresses", "--cors-origin", "--head-metrics"}
    unasked |= {"--public-url", "--explain-budget-bytes"}
    assert not unasked & set(head_command(options))


def test_the_head_is_told_which_requests_its_gateway_traces() -> None:
    options = ServeOptions("m", "mini", Path("/data"), traces=TraceChoice(0.01, 5000))
    assert "--trace-sample 0.01 --trace-slow-ms 5000" in " ".join(head_command(options))


def test_the_head_is_told_how_much_its_gateway_keeps_of_what_it_decided() -> None:
    options = ServeOptions("m", "mini", Path("/data"), explain_budget_bytes=0)
    assert "--explain-budget-bytes 0" in " ".join(head_command(options))


def test_each_process_is_told_where_its_own_metrics_are() -> None:
    options = ServeOptions(
        "m", "mini", Path("/data"), metrics="h:3", head_metrics="h:4", node_metrics="h:5"
    )
    assert "--gateway-metrics h:3 --head-metrics h:4" in " ".join(head_command(options))
    assert "--node-metrics h:5" in " ".join(node_command(options))


def test_what_is_opened_is_handed_on() -> None:
    options = ServeOptions(
        "m",
        "mini",
        Path("/data"),
        open_gateway=True,
        allow_hosts=("llm.lan",),
        cors_origins=("https://a.example", "https://b.example"),
        client_addresses=False,
        public_url="https://llm.example/v1",
        allow_model_code=True,
        gateway_tls=GatewayTls(Path("/c.pem"), Path("/k.pem")),
    )
    head = " ".join(head_command(options))
    assert "--gateway-tls-cert /c.pem --gateway-tls-key /k.pem" in head
    assert "--open --no-client-addresses --allow-host llm.lan" in head
    assert "--public-url https://llm.example/v1" in head
    assert "--cors-origin https://a.example --cors-origin https://b.example" in head
    assert node_command(options)[-1] == "--allow-model-code"


def test_the_node_is_told_where_keys_are_and_may_go() -> None:
    options = ServeOptions(
        "m", "mini", Path("/data"), secrets_dir=Path("/keys"), provider_hosts=("a.example", "*.b")
    )
    told = "--secrets-dir /keys --provider-hosts a.example,*.b"
    assert told in " ".join(node_command(options))
    assert told not in " ".join(head_command(options))


def test_the_node_is_told_which_modules_may_route() -> None:
    options = ServeOptions("m", "mini", Path("/data"), program_modules=("ours.routing", "b"))
    assert "--program-modules ours.routing,b" in " ".join(node_command(options))


def test_both_commands_can_be_recognised_as_leftovers() -> None:
    options = ServeOptions("m", "mini", Path("/data"))
    mark = " ".join(leftover_mark(options.data_dir))
    assert all(mark in " ".join(command(options)) for command in (head_command, node_command))


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""
