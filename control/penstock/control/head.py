"""The head process: starts the objects of `head_world.py` in order, and stops them in order.

One TaskGroup owns everything that runs. Start: own the data directory, open the store, take up the
last view, listen, look around, open the routes. Stop: admin, gateway, managers, rpc, store. Node
agents and replicas are left alone: who started them stops them.

SIGTERM ends the head alone: its gateway serves on, and the next head on this data directory adopts
it. SIGINT, which is Ctrl-C, ends the gateway too.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from dataclasses import dataclass
from datetime import timedelta

from penstock.control.data_dir import check_store, logs_path
from penstock.control.errors import CannotStart
from penstock.control.head_world import Head, built
from penstock.control.managers.startup import look_around_then_act
from penstock.control.metrics.server import serve_metrics
from penstock.control.outside.clock import SystemClock
from penstock.control.outside.logs import configure_logs
from penstock.control.outside.sockets import listen
from penstock.control.settings import HeadSettings, split_address
from penstock.control.supervision.log_watch import keep_logs

log = logging.getLogger(__name__)


async def run_head(settings: HeadSettings) -> int:
    """Runs the head until SIGTERM or SIGINT; returns the process's exit code."""
    configure_logs("head", settings.log_level)
    try:
        check_store(settings.data_dir, existed=settings.existing_store)
        async with built(settings) as head:
            await _run(head, settings)
    except CannotStart as error:
        return _refuse(error)
    except BaseExceptionGroup as group:
        reason = _cannot_start(group)
        if reason is None:
            raise
        return _refuse(reason)
    return 0


async def _run(head: Head, settings: HeadSettings) -> None:
    """Runs every part until a signal asks to stop, or one of them fails."""
    stop = _catch_signals()
    async with asyncio.TaskGroup() as tasks:
        admin = tasks.create_task(head.admin.run_until_stopped())
        gateway = tasks.create_task(head.gateway.run()) if head.gateway else None
        managers = [
            tasks.create_task(_look_around_then_act(head, settings)),
            tasks.create_task(head.health.run()),
            tasks.create_task(head.routes.run()),
            tasks.create_task(head.usage.run()),
            tasks.create_task(head.watch.run()),
            tasks.create_task(head.events.run()),
            tasks.create_task(head.engines.run()),
            tasks.create_task(
                keep_logs(logs_path(settings.data_dir), settings.logs, SystemClock())
            ),
            tasks.create_task(head.adapters.residence.run()),
            tasks.create_task(head.canaries.run()),
            tasks.create_task(head.shadows.comparer.run()),
            tasks.create_task(head.shadows.limits.run()),
            tasks.create_task(head.shadows.recording_limits.run()),
            tasks.create_task(_serve_metrics(head, settings)),
        ]
        log.info("head started", extra={"data_dir": str(settings.data_dir)})
        await stop.requested.wait()
        log.info("head stops", extra={"gateway_too": stop.gateway_too})
        head.events.close()
        head.explain.close()
        head.admin.stop()
        await asyncio.wait([admin])
        if gateway is not None:  # the gateway itself runs on, for the next head
            gateway.cancel()
            await asyncio.wait([gateway])
        if head.gateway is not None and stop.gateway_too:
            await head.gateway.stop()
        await head.events.write()
        for manager in managers:
            manager.cancel()


async def _serve_metrics(head: Head, settings: HeadSettings) -> None:
    if settings.head_metrics:
        where = split_address(settings.head_metrics, flag="--head-metrics")
        page = head.metrics.page
        await serve_metrics(lambda: listen(*where, flag="--head-metrics"), page, SystemClock())


async def _look_around_then_act(head: Head, settings: HeadSettings) -> None:
    async def before_acting() -> None:
        if head.cluster.takes_over:
            await _take_over(head, settings.timings.take_over_after)
        head.adapters.residence.open()
        head.engines.open()
        head.canaries.open()

    await look_around_then_act(
        head.health,
        head.routes,
        head.deployments,
        expect_nodes_for=settings.timings.expect_nodes_for,
        before_acting=before_acting,
    )


async def _take_over(head: Head, listen_for: timedelta) -> None:
    """Listens to who is there, tells what they know and the store does not, and goes on."""
    log.info("head takes over: it listens to nodes and gateways first")
    await asyncio.sleep(listen_for.total_seconds())
    for difference in await head.cluster.take_over():
        log.warning("take-over: %s", difference)
    log.warning("head has taken over: %s", head.cluster.stamp)


@dataclass(slots=True)
class _Stop:
    """What the signals asked for."""

    requested: asyncio.Event
    gateway_too: bool = False

    def ask(self, *, gateway_too: bool) -> None:
        """A signal arrived."""
        self.gateway_too |= gateway_too
        self.requested.set()


def _catch_signals() -> _Stop:
    stop = _Stop(asyncio.Event())
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, lambda: stop.ask(gateway_too=False))
    loop.add_signal_handler(signal.SIGINT, lambda: stop.ask(gateway_too=True))
    return stop


def _cannot_start(group: BaseExceptionGroup[BaseException]) -> CannotStart | None:
    """The one reason in a group of errors, where they are all of that kind."""
    found: BaseException = group
    while isinstance(found, BaseExceptionGroup) and len(found.exceptions) == 1:
        found = found.exceptions[0]
    return found if isinstance(found, CannotStart) else None


def _refuse(error: CannotStart) -> int:
    text = str(error)
    prefix = "" if text.startswith("penstock-gateway: error:") else "penstock head: error: "
    sys.stderr.write(f"{prefix}{text}\n")
    return 1
