"""Starts, watches, restarts and replaces the local gateway.

The gateway outlives the head, however the head ends: the next one finds it by its command line and
adopts it, with every stream that it carries. Nothing needs to be remembered for that, so there is
no moment in which a crash, and no disk so full, that it would be lost. Only `stop` ends it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any

from penstock.control import log_files
from penstock.control.errors import CannotStart, Code, LaunchFailed, NotFound, PenstockError
from penstock.control.managers.fleet.gateway_process import (
    SHARE_PORT,
    GatewayCommand,
    forget_routes,
    gateway_mark,
    generation_of,
    hand_routes,
)
from penstock.control.managers.fleet.local_gateway import GatewayDependencies, LocalGateway
from penstock.control.managers.write import Write
from penstock.control.state.cluster import Gateway, GatewayState
from penstock.control.supervision.process import Process
from penstock.control.supervision.restart_policy import OWN_PROCESSES, Ending, StartAgain, after_end
from penstock.control.supervision.supervisor import supervise

log = logging.getLogger(__name__)

# A little above the gateway's own deadline for draining.
STOP_PATIENCE = timedelta(seconds=35)
REPLACEMENT_DEADLINE = timedelta(seconds=30)
# Bad flags, or the port is taken: the gateway's own words, and no use in trying again.
FATAL_EXITS = (2, 3)


class GatewayManager:
    """Keeps one gateway process running, and any that it replaced until their last client left."""

    def __init__(self, command: GatewayCommand, needs: GatewayDependencies) -> None:
        self._command = command  # of the current one
        self._needs = needs
        self._current: LocalGateway | None = None
        self._living: set[LocalGateway] = set()  # that one, and those that it replaced
        self._older: list[LocalGateway] = []  # adopted ones that serve until the current one works
        self._tasks: asyncio.TaskGroup
        self._changed = asyncio.Event()  # a gateway ended, or another one is current
        self._replacing = asyncio.Lock()
        self._was_ready = False
        self._failures = 0  # in a row
        self._began = 0.0

    async def run(self) -> None:
        """Keeps it running until cancelled; raises CannotStart where it never could run."""
        async with asyncio.TaskGroup() as self._tasks:
            await supervise(self, await self._adopt())

    async def stop(self) -> None:
        """Drains and ends every gateway; called after `run` was cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for gateway in self._living:
                tasks.create_task(gateway.end(STOP_PATIENCE))
        self._current, self._living = None, set()
        await self._needs.show(self._command, state=GatewayState.STOPPED, pid=0)

    async def replace(self, gateway_id: str, write: Write) -> Gateway:
        """Starts another gateway on the same port; the old one is asked to drain once the new one
        works, and is shown until its last client has left. Returns the new one.

        Raises `unknown-gateway`, `revision-mismatch`, and `gateway-not-replaced` where the old one
        goes on alone.
        """
        if self._current is None or self._current.command.id != gateway_id:
            current = self._current.command.id if self._current else "none"
            raise NotFound(
                f"no gateway {gateway_id!r} that this head runs: the current one is {current}",
                Code.UNKNOWN_GATEWAY,
            )
        write.check(self._shown(), f"gateway {gateway_id!r}")
        if write.dry_run:
            self._check_alone()
            return self._shown()
        return await self._replace_with(self._command.successor())

    # ---- the life that `supervise` lives through

    async def start(self) -> LocalGateway:
        """A process for today's command, unless a replacement has come up meanwhile."""
        if self._current is None or self._current.has_ended:
            self._current = await self._launch(self._command)
        return self._current

    async def accompany(self, gateway: LocalGateway) -> int | None:
        """Returns at the end of the current gateway, which may be another one by then."""
        self._began = self._needs.clock.monotonic()
        while not gateway.has_ended:
            await self._changed.wait()
            self._changed.clear()
            gateway = self._current or gateway
        return gateway.exit_code

    async def ended(self, exit_code: int | None, refusal: LaunchFailed | None) -> timedelta | None:
        """Shows why; raises where it never could run."""
        if self._current is not None and self._current.has_ended:
            self._was_ready |= self._current.ready.is_set()
            self._current = None
        if refusal is not None and not self._was_ready:
            raise refusal
        why = str(refusal) if refusal else self._explain(exit_code)
        log.warning("gateway ended", extra={"exit_code": exit_code, "why": why})
        restarts = self._shown().restarts + 1
        await self._needs.show(
            self._command, state=GatewayState.BACKOFF, pid=0, restarts=restarts, last_error=why
        )
        return self._pause_after(exit_code)

    async def pause(self, duration: timedelta) -> bool:
        """Waits before the next start."""
        await self._needs.clock.sleep(duration)
        return True

    # ---- steps

    async def _adopt(self) -> LocalGateway | None:
        """The newest gateway that an earlier head left. Older ones serve until it works, one with
        other settings than today's until its replacement does."""
        found = [
            (generation_of(process.argv, self._command.name), process)
            for process in self._needs.launcher.find(gateway_mark(self._command.data_dir))
        ]
        for generation, process in sorted(found, key=_newest_last):
            before, self._command = self._current, self._command.of_generation(generation)
            if before is not None and before.command.id == self._command.id:
                await before.drain()  # nothing tells the reports of these two apart
            elif before is not None:
                self._older.append(before)
            self._current = await self._watch(self._command, process)
            log.info("gateway adopted", extra={"pid": process.pid, "gateway": self._command.id})
        if self._current is not None:
            self._tasks.create_task(self._settle())
        return self._current

    async def _settle(self) -> None:
        """One gateway is to be left of those that were adopted, and it is to run as today's command
        says."""
        while self._older and (newest := self._current):
            await self._first_of(newest.ready.wait(), newest.ended())
            if newest.ready.is_set():
                older, self._older = self._older, []
                for gateway in older:
                    await gateway.give_way()
        if self._current is not None and not self._command.runs(self._current.argv):
            await self._succeed("gateway runs with other settings: replaced")

    async def _succeed(self, why: str) -> None:
        log.info(why)
        try:
            await self._replace_with(self._command.successor())
        except PenstockError as error:
            log.error("gateway is not replaced: %s", error)

    async def _mind(self, gateway: LocalGateway) -> None:
        """Somebody may tell it to stop: then another one listens before it listens no longer."""
        await self._first_of(gateway.leaves.wait(), gateway.ended())
        if gateway is self._current and not gateway.has_ended:
            await self._succeed("gateway was told to stop: replaced")

    def _fall_back(self, ended: LocalGateway) -> None:
        """An older gateway that still serves is the current one again."""
        self._older = [each for each in self._older if each is not ended]
        serving = [each for each in self._older if not each.drains]
        if ended is self._current and serving:
            self._current, self._command = serving[-1], serving[-1].command
            self._older.remove(serving[-1])
            log.error("gateway ended before it worked: the one before it goes on")

    def _check_alone(self) -> None:
        if self._replacing.locked():
            raise PenstockError(
                "a replacement is on its way already: wait for it", Code.GATEWAY_NOT_REPLACED
            )

    async def _replace_with(self, command: GatewayCommand) -> Gateway:
        self._check_alone()
        async with self._replacing:
            hand_routes(self._command, command)
            fresh = await self._launch(command, SHARE_PORT)
            try:
                await self._until_ready(fresh)
            except BaseException:  # whoever asked may have left: nothing of it is to stay
                fresh.kill()
                raise
            old, self._current, self._command = self._current, fresh, command
            self._changed.set()
            if old is not None and not old.has_ended:
                await old.give_way()
        return self._shown()

    async def _until_ready(self, gateway: LocalGateway) -> None:
        """Raises `gateway-not-replaced`."""
        deadline = self._needs.clock.sleep(REPLACEMENT_DEADLINE)
        await self._first_of(gateway.ready.wait(), gateway.ended(), deadline)
        if not gateway.ready.is_set():
            why = _last_words(gateway.command) or f"not ready after {REPLACEMENT_DEADLINE}"
            raise PenstockError(
                f"the new gateway does not work, the old one goes on: {why}",
                Code.GATEWAY_NOT_REPLACED,
            )

    async def _first_of(self, *moments: Coroutine[Any, Any, object]) -> None:
        """Returns when the first of them does."""
        waiting = [self._tasks.create_task(moment) for moment in moments]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()

    async def _launch(self, command: GatewayCommand, *flags: str) -> LocalGateway:
        if unlogged := log_files.unwritable(command.log_path):
            log.warning("gateway %s: %s", command.id, unlogged)
        process = await self._needs.launcher.start(
            [*command.argv(), *flags], log_path=command.log_path
        )
        log.info("gateway started", extra={"pid": process.pid, "gateway": command.id})
        return await self._watch(command, process, started_at=self._needs.clock.now())

    async def _watch(
        self, command: GatewayCommand, process: Process, **facts: object
    ) -> LocalGateway:
        gateway = LocalGateway(command, process, self._needs, lambda: len(self._living) == 1)
        self._living.add(gateway)
        await self._needs.show(command, state=GatewayState.STARTING, pid=process.pid, **facts)
        self._tasks.create_task(self._live(gateway))
        self._tasks.create_task(self._mind(gateway))
        return gateway

    async def _live(self, gateway: LocalGateway) -> None:
        await gateway.live()
        self._living.discard(gateway)
        self._fall_back(gateway)
        if gateway.command.id != self._command.id:
            forget_routes(gateway.command)
            await self._needs.forget(gateway.command)
        self._changed.set()

    def _explain(self, exit_code: int | None) -> str:
        why = _last_words(self._command)
        ended = "ended" if exit_code is None else f"ended with exit code {exit_code}"
        if exit_code in FATAL_EXITS and not self._was_ready:
            raise CannotStart(why or f"the gateway {ended}")
        return f"{ended}: {why}"

    def _pause_after(self, exit_code: int | None) -> timedelta:
        ran = timedelta(seconds=self._needs.clock.monotonic() - self._began)
        decision = after_end(OWN_PROCESSES, self._failures, Ending(exit_code, ran))
        assert isinstance(decision, StartAgain), "a gateway has no exit code that means giving up"
        self._failures = decision.failures
        return decision.after

    def _shown(self) -> Gateway:
        known = self._needs.cluster.view().gateways.get(self._command.id)
        return known or Gateway(self._command.id, GatewayState.STARTING)


def _newest_last(found: tuple[int, Process]) -> tuple[int, int]:
    generation, process = found
    return (generation, -process.pid)


def _last_words(command: GatewayCommand) -> str:
    return " ".join(log_files.tail(command.log_path, 1))
