"""Composition root of `penstock serve`: builds its objects, runs them, takes everything down.

Whatever happens, nothing stays behind: children are told to stop when this process dies, orphans
below it become its own children, and at its end it kills what is left of them.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import AsyncExitStack
from datetime import timedelta

from rich.console import Console

from penstock.control.data_dir import locked, logs_path
from penstock.control.errors import PenstockError
from penstock.control.managers.fleet.gateway_process import gateway_mark
from penstock.control.node_agent.state_files import StateFiles
from penstock.control.outside import process_tree
from penstock.control.outside.admin_client import AdminClient, token_in
from penstock.control.outside.clock import SystemClock
from penstock.control.outside.gateway_client import GatewayClient
from penstock.control.outside.machine import available_memory
from penstock.control.outside.processes import ProcessLauncher, RunningProcess
from penstock.control.serving import checks
from penstock.control.serving.children import (
    EXISTING_STORE,
    Child,
    head_command,
    leftover_mark,
    node_command,
)
from penstock.control.serving.display import Display
from penstock.control.serving.file_session import FileSession
from penstock.control.serving.options import ServeOptions
from penstock.control.serving.session import Session

# Together below the ten seconds that Ctrl-C may take.
NODE_LIMIT = timedelta(seconds=6.5)
HEAD_LIMIT = timedelta(seconds=1.8)
KILL_SECONDS = 1.0
# How long the children of a killed serve may take to end by themselves.
LEFTOVER_LIMIT = timedelta(seconds=10)
SECOND_CTRL_C = 130


async def run_serve(options: ServeOptions, console: Console) -> int:
    """Serves until Ctrl-C or SIGTERM; returns the exit code."""
    display = Display(console)
    try:
        held = f"penstock serve already runs on {options.data_dir}"
        with locked(options.data_dir / "serve.lock", held):
            return await _Serving(options, display).run()
    except PenstockError as error:
        return _refuse(options, display, error)
    except BaseExceptionGroup as group:
        reasons, others = group.split(PenstockError)
        if others is not None or reasons is None:
            raise
        return _refuse(options, display, _first(reasons))
    finally:
        display.close()


class _Serving:
    """The processes of one run, and the way down."""

    def __init__(self, options: ServeOptions, display: Display) -> None:
        self._options = options
        self._display = display
        self._launcher = ProcessLauncher()
        self._head = self._child("head", head_command(options), EXISTING_STORE)
        self._node = self._child("node agent", node_command(options))
        self._stop = asyncio.Event()

    async def run(self) -> int:
        """Everything from the checks to the last process gone."""
        loop = asyncio.get_running_loop()
        # A script's background job is born with SIGINT ignored, and is still to be stopped by it.
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._asked_to_stop)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup stays nohup
            loop.add_signal_handler(signal.SIGHUP, self._asked_to_stop)
        await self._check()
        process_tree.adopt_orphans()
        loop.add_signal_handler(signal.SIGCHLD, self._reap)
        try:
            await self._serve()
        finally:
            await self._take_down()
        return 0

    async def _check(self) -> None:
        """Finds what would go wrong later. Raises `CannotStart` and `invalid-setting`."""
        options = self._options
        checks.check_memory(options.engine, options.replicas, available_memory())
        await self._wait_for_leftovers()
        checks.check_ports(options, [process.pid for process in self._left_gateways()])

    async def _serve(self) -> None:
        """Until stopped. Raises `CannotStart`, alone or in a group."""
        options = self._options
        async with AsyncExitStack() as stack:
            token = token_in(options.admin_token_file)
            admin = await stack.enter_async_context(AdminClient(options.admin_url, token))
            gateway = await stack.enter_async_context(GatewayClient(options.gateway_url))
            session_of = FileSession if options.files else Session
            session = session_of(options, admin, gateway, self._display, self._head, self._node)
            async with asyncio.TaskGroup() as tasks:
                running = [
                    tasks.create_task(self._head.keep_running()),
                    tasks.create_task(self._node.keep_running()),
                    tasks.create_task(session.run()),
                ]
                await self._stop.wait()
                for task in running:
                    task.cancel()

    async def _take_down(self) -> None:
        """Replicas first, so that the gateway has nothing to wait for; then whatever is left."""
        self._display.progress("stopping", seconds=0)
        await self._node.stop(NODE_LIMIT)
        await self._head.stop(HEAD_LIMIT)
        self._kill_all()
        self._display.done("stopped: no process is left")

    # ---- processes

    def _child(self, name: str, argv: list[str], *again: str) -> Child:
        log_path = logs_path(self._options.data_dir) / f"{name.replace(' ', '-')}.log"
        tell = self._display.event
        return Child(name, argv, log_path, self._launcher, SystemClock(), tell, again)

    def _asked_to_stop(self) -> None:
        if self._stop.is_set():  # the second time: at once
            self._display.close()
            self._kill_all()
            os._exit(SECOND_CTRL_C)
        self._stop.set()

    def _reap(self) -> None:
        process_tree.reap_orphans((self._head.pid, self._node.pid))

    def _kill_all(self) -> None:
        asyncio.get_running_loop().remove_signal_handler(signal.SIGCHLD)
        process_tree.kill_descendants((), seconds=KILL_SECONDS)
        # Adopted from an earlier run, so not below us.
        for process in [*self._left_gateways(), *self._left_replicas()]:
            process.kill_group()

    async def _wait_for_leftovers(self) -> None:
        """A serve that was killed takes its head and agent along, but they need a moment."""
        for process in self._launcher.find(leftover_mark(self._options.data_dir)):
            self._display.progress("waiting for processes of an earlier run to end", seconds=0)
            process.interrupt()
            try:
                async with asyncio.timeout(LEFTOVER_LIMIT.total_seconds()):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()

    def _left_gateways(self) -> list[RunningProcess]:
        return self._launcher.find(gateway_mark(self._options.data_dir))

    def _left_replicas(self) -> list[RunningProcess]:
        found = []
        for record in StateFiles(self._options.data_dir).load():
            if process := self._launcher.adopt(record.pid, record.process_started_at):
                found.append(process)
        return found


def _refuse(options: ServeOptions, display: Display, error: BaseException) -> int:
    display.close()
    sys.stderr.write(f"penstock {options.verb}: error: {error}\n")
    return 1


def _first(group: BaseExceptionGroup[PenstockError]) -> PenstockError:
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error
