"""Starts, watches and restarts the local gateway, and stops it when the head stops in order.

The gateway outlives a crash of the head: the next head finds it by its command line and adopts it,
with every stream that it carries. Nothing needs to be remembered for that, so there is no moment in
which a crash, and no disk so full, that it would be lost.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from datetime import timedelta

from penstock.control import log_files
from penstock.control.errors import CannotStart, LaunchFailed
from penstock.control.managers.clock import Clock
from penstock.control.managers.gateway_process import (
    GatewayCommand,
    Launcher,
    LivenessProbe,
    Process,
)
from penstock.control.managers.keeper import Keeper
from penstock.control.state.cluster import ClusterView, Gateway, GatewayState

log = logging.getLogger(__name__)

PROBE_EVERY = timedelta(milliseconds=500)
# In a row; with the probe's own timeout of a second this takes some ten seconds.
UNANSWERED_IS_HUNG = 6
FIRST_BACKOFF = timedelta(milliseconds=100)
LONGEST_BACKOFF = timedelta(seconds=5)
# One that ran for so long did not end because of how it was started.
STABLE_AFTER = timedelta(seconds=10)
STOP_PATIENCE = timedelta(seconds=35)
# Bad flags, or the port is taken: the gateway's own words, and no use in trying again.
FATAL_EXITS = (2, 3)


class GatewayManager:
    """Keeps one gateway process running."""

    def __init__(
        self,
        command: GatewayCommand,
        launcher: Launcher,
        probe: LivenessProbe,
        keeper: Keeper,
        clock: Clock,
    ) -> None:
        self._command = command
        self._launcher = launcher
        self._probe = probe
        self._keeper = keeper
        self._clock = clock
        self._process: Process | None = None
        self._was_ready = False

    async def run(self) -> None:
        """Keeps it running until cancelled; raises CannotStart where it never could run."""
        backoff = FIRST_BACKOFF
        self._process = await self._adopt()
        while True:
            began = self._clock.monotonic()
            await self._live_once()
            if self._clock.monotonic() - began > STABLE_AFTER.total_seconds():
                backoff = FIRST_BACKOFF
            await self._clock.sleep(backoff)
            backoff = min(backoff * 2, LONGEST_BACKOFF)

    async def _live_once(self) -> None:
        """One process, from its start or its adoption to its end."""
        try:
            self._process = self._process or await self._start()
        except LaunchFailed as error:
            if not self._was_ready:
                raise
            await self._rest(str(error))
            return
        exit_code = await self._watch(self._process)
        self._process = None
        await self._ended(exit_code)

    async def stop(self) -> None:
        """Drains and ends the gateway; called after `run` was cancelled."""
        process, self._process = self._process, None
        if process is None:
            return
        await _end(process)
        await self._show(state=GatewayState.STOPPED, pid=0)

    async def _adopt(self) -> Process | None:
        """The gateway that an earlier head left, if its settings are today's; others are ended."""
        # Without the program's name: one that is a script appears under its interpreter's.
        fit = self._launcher.find_pids(self._command.argv()[1:])
        adopted: Process | None = None
        for process in self._launcher.find(self._command.mark):
            if process.pid in fit and adopted is None:
                adopted = process
                log.info("gateway adopted", extra={"pid": process.pid})
                await self._show(state=GatewayState.STARTING, pid=process.pid)
            else:
                log.info("gateway runs with other settings: replaced", extra={"pid": process.pid})
                await _end(process)
        return adopted

    async def _start(self) -> Process:
        command = self._command
        process = await self._launcher.start(command.argv(), log_path=command.log_path)
        log.info("gateway started", extra={"pid": process.pid, "address": command.listen})
        await self._show(state=GatewayState.STARTING, pid=process.pid, started_at=self._clock.now())
        return process

    async def _watch(self, process: Process) -> int | None:
        """Returns at the process's end; probes it meanwhile and ends it where it hangs."""
        async with asyncio.TaskGroup() as tasks:
            probing = tasks.create_task(self._keep_probing(process))
            exit_code = await process.wait()
            probing.cancel()
        return exit_code

    async def _keep_probing(self, process: Process) -> None:
        unanswered = 0
        while unanswered < UNANSWERED_IS_HUNG:
            if await self._probe.alive(self._command.listen):
                unanswered = 0
                self._was_ready = True
                await self._show(state=GatewayState.READY, last_error="")
            else:
                unanswered += 1
                if self._was_ready:
                    await self._show(state=GatewayState.UNRESPONSIVE)
            log_files.bound(self._command.log_path)
            await self._clock.sleep(PROBE_EVERY)
        log.error("gateway does not answer /livez: ended", extra={"pid": process.pid})
        process.kill()

    async def _ended(self, exit_code: int | None) -> None:
        why = " ".join(log_files.tail(self._command.log_path, 1))
        if exit_code in FATAL_EXITS and not self._was_ready:
            raise CannotStart(why or f"the gateway ended with exit code {exit_code}")
        ended = "ended" if exit_code is None else f"ended with exit code {exit_code}"
        log.warning("gateway ended", extra={"exit_code": exit_code, "last_line": why})
        await self._rest(f"{ended}: {why}")

    async def _rest(self, error: str) -> None:
        restarts = self._gateway(self._keeper.cluster.view()).restarts + 1
        await self._show(state=GatewayState.BACKOFF, pid=0, restarts=restarts, last_error=error)

    def _gateway(self, view: ClusterView) -> Gateway:
        known = view.gateways.get(self._command.id)
        return known or Gateway(self._command.id, GatewayState.STARTING)

    async def _show(self, **facts: object) -> None:
        def step(view: ClusterView) -> ClusterView:
            gateway = replace(self._gateway(view), address=self._command.listen)
            return view.with_gateway(replace(gateway, **facts))  # type: ignore[arg-type]

        await self._keeper.observe(step, f"gateway {self._command.id}")


async def _end(process: Process) -> None:
    """SIGTERM, and SIGKILL where draining takes too long."""
    process.terminate()
    try:
        async with asyncio.timeout(STOP_PATIENCE.total_seconds()):
            await process.wait()
    except TimeoutError:
        log.error("gateway did not stop in time: killed", extra={"pid": process.pid})
        process.kill()
        await process.wait()
