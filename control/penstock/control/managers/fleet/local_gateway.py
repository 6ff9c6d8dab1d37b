"""One gateway process, from its start or adoption to its end: probed, shown, ended if it hangs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.fleet.gateway_process import GatewayCommand, LivenessProbe
from penstock.control.managers.fleet.gateway_signs import GatewaySigns
from penstock.control.state.cluster import ClusterView, Gateway, GatewayState
from penstock.control.state.fleet.gateway_liveness import GatewayPatience, Verdict, is_mute, judge
from penstock.control.supervision.clock import Clock
from penstock.control.supervision.process import Launcher, Process

log = logging.getLogger(__name__)

PROBE_EVERY = timedelta(milliseconds=500)
# So that a gateway is known to be ready soon after it is.
PROBE_STARTING_EVERY = timedelta(milliseconds=100)

# What a gateway has that was adopted to tell this head what it counted before.
OBSERVED_WITHIN = timedelta(seconds=5)

SHOWN_AS = {
    Verdict.STARTING: GatewayState.STARTING,
    Verdict.READY: GatewayState.READY,
    Verdict.DRAINING: GatewayState.DRAINING,
    Verdict.SILENT: GatewayState.UNRESPONSIVE,
    Verdict.HUNG: GatewayState.UNRESPONSIVE,
}


@dataclass(frozen=True, slots=True)
class GatewayDependencies:
    """What looking after gateways takes of the outside, and how patient it is."""

    launcher: Launcher
    probe: LivenessProbe
    cluster: ClusterStore
    clock: Clock
    signs: GatewaySigns
    patience: GatewayPatience

    async def show(self, command: GatewayCommand, **facts: object) -> None:
        """Changes what the view says of a gateway."""

        def step(view: ClusterView) -> ClusterView:
            known = view.gateways.get(command.id) or Gateway(command.id, GatewayState.STARTING)
            gateway = replace(known, address=command.listen)
            return view.with_gateway(replace(gateway, **facts))  # type: ignore[arg-type]

        await self.cluster.observe(step, f"gateway {command.id}")

    async def forget(self, command: GatewayCommand) -> None:
        """Takes a gateway out of the view."""
        await self.cluster.observe(
            lambda view: view.without_gateway(command.id), f"gateway {command.id} ended"
        )


class LocalGateway:
    """One gateway process. `live` runs once, in a task of its own."""

    def __init__(
        self,
        command: GatewayCommand,
        process: Process,
        needs: GatewayDependencies,
        is_alone: Callable[[], bool],
    ) -> None:
        self.command = command
        # It was seen working; beside another one: with routes, or it could not take its place.
        self.ready = asyncio.Event()
        # It drains, and nobody here asked: another one is to take its place.
        self.leaves = asyncio.Event()
        self.exit_code: int | None = None
        self._process = process
        self._needs = needs
        # Two gateways share their ports while one replaces the other: whose answer is it then?
        self._is_alone = is_alone
        self._ended = asyncio.Event()
        self._told_mute = False
        self._asked_to_drain = 0  # times
        needs.signs.begin(command.id)

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    @property
    def argv(self) -> Sequence[str]:
        """Its command line."""
        return self._process.argv

    @property
    def drains(self) -> bool:
        """Whether it said that it does, or was told to."""
        return self._needs.signs.of(self.command.id).draining

    @property
    def has_ended(self) -> bool:
        """Whether the process is gone."""
        return self._ended.is_set()

    async def ended(self) -> None:
        """Returns at the process's end."""
        await self._ended.wait()

    async def live(self) -> None:
        """Returns at the process's end; probes it meanwhile and ends it where it hangs."""
        async with asyncio.TaskGroup() as tasks:
            probing = tasks.create_task(self._keep_probing())
            self.exit_code = await self._process.wait()
            probing.cancel()
        self._ended.set()

    async def drain(self) -> None:
        """Asks it to finish what it carries and to end."""
        self._ask_to_drain()
        self._needs.signs.asked_to_drain(self.command.id)
        await self._needs.show(self.command, state=GatewayState.DRAINING)

    async def give_way(self) -> None:
        """Drains it once it has told this head what it counted while none was there, which nobody
        knows when it has ended; after a while in any case."""
        clock, signs = self._needs.clock, self._needs.signs
        until = clock.monotonic() + OBSERVED_WITHIN.total_seconds()
        while signs.of(self.command.id).reported_at is None and clock.monotonic() < until:
            if self.has_ended:
                return
            await clock.sleep(PROBE_STARTING_EVERY)
        await self.drain()

    async def end(self, patience: timedelta) -> None:
        """Drains it and returns when it has ended; kills it where that takes too long."""
        # An interrupt is for what listens, a second one would cut its streams.
        (self._process.terminate if self.drains else self._process.interrupt)()
        try:
            async with asyncio.timeout(patience.total_seconds()):
                await self._process.wait()
        except TimeoutError:
            log.error("gateway did not stop in time: killed", extra={"pid": self.pid})
            self.kill()
            await self._process.wait()

    def _ask_to_drain(self) -> None:
        self._asked_to_drain += 1
        self._process.terminate()

    def kill(self) -> None:
        """Ends it at once, with every stream that it carries."""
        self._process.kill()

    async def _keep_probing(self) -> None:
        clock = self._needs.clock
        while True:
            verdict = await self._look()
            if verdict is Verdict.HUNG:
                log.error("gateway gives no sign of life: killed", extra={"pid": self.pid})
                self.kill()
                return
            starting = verdict is Verdict.STARTING
            await clock.sleep(PROBE_STARTING_EVERY if starting else PROBE_EVERY)

    async def _look(self) -> Verdict:
        needs, gateway_id = self._needs, self.command.id
        if self._asked_to_drain == 1:  # it listens on until it is asked twice
            self._ask_to_drain()
        await self._probe()
        verdict = judge(needs.signs.of(gateway_id), needs.clock.monotonic(), needs.patience)
        if verdict is Verdict.READY:
            if self._is_alone() or needs.signs.of(gateway_id).has_routes:
                self.ready.set()
            mute = self._why_mute()
            await needs.show(self.command, state=GatewayState.READY, last_error=mute)
        else:
            await needs.show(self.command, state=SHOWN_AS[verdict])
        if self.drains and not self._asked_to_drain:
            self.leaves.set()
        return verdict

    def _why_mute(self) -> str:
        """What to do about a gateway that this head never hears from, also in the log once; empty:
        it is heard."""
        needs, gateway_id = self._needs, self.command.id
        if not is_mute(needs.signs.of(gateway_id), needs.clock.monotonic(), needs.patience):
            return ""
        text = (
            "reports nothing to this head and gets no routes from it; "
            f"`penstock replace {gateway_id}` starts one with today's cluster token, and cuts no "
            "stream"
        )
        if not self._told_mute:
            log.error("gateway %s", text)
        self._told_mute = True
        return text

    async def _probe(self) -> None:
        """Takes note of what a probe says. Of two that share their ports, an answer says that one
        of them lives, and only silence is known to be of both."""
        signs, gateway_id, alone = self._needs.signs, self.command.id, self._is_alone()
        if signs.of(gateway_id).draining and not alone:
            signs.probed(gateway_id, answered=False)  # it listens no longer: the port is another's
        elif not await self._answers():
            signs.probed(gateway_id, answered=False)
        elif alone:
            signs.probed(gateway_id, answered=True)
        else:
            signs.one_of_two_answered(gateway_id)

    async def _answers(self) -> bool:
        """On its status port, or else on that of its clients, whose silence says nothing."""
        command, probe = self.command, self._needs.probe
        if command.metrics and await probe.alive(command.metrics):
            return True
        return await probe.alive(command.listen, tls=command.tls is not None)
