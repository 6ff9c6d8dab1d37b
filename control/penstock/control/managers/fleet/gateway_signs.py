"""The signs of life of this head's own gateways, from their reports and from probes."""

from __future__ import annotations

from penstock.control.state.cluster import GatewayReport
from penstock.control.state.fleet.gateway_liveness import Signs
from penstock.control.supervision.clock import Clock


class GatewaySigns:
    """Holds the signs of each local gateway by its id; of others it takes no note."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._signs: dict[str, Signs] = {}

    def begin(self, gateway_id: str) -> None:
        """A process of this id was started, or adopted: earlier signs were another's."""
        self._signs[gateway_id] = Signs(since=self._clock.monotonic())

    def of(self, gateway_id: str) -> Signs:
        """What was seen since `begin`."""
        return self._signs[gateway_id]

    def reported(self, gateway_id: str, report: GatewayReport) -> None:
        """A report arrived."""
        if signs := self._signs.get(gateway_id):
            now = self._clock.monotonic()
            self._signs[gateway_id] = signs.reported(
                report.bytes_sent,
                now,
                draining=report.draining,
                has_routes=report.snapshot_version > 0,
            )

    def probed(self, gateway_id: str, *, answered: bool) -> None:
        """A probe was answered, or was not."""
        signs = self._signs[gateway_id]
        now = self._clock.monotonic()
        self._signs[gateway_id] = signs.answered(now) if answered else signs.missed()

    def one_of_two_answered(self, gateway_id: str) -> None:
        """A probe of a port that it shares was answered: by it, or by the other one."""
        self._signs[gateway_id] = self._signs[gateway_id].not_missed()

    def asked_to_drain(self, gateway_id: str) -> None:
        """It was sent the SIGTERM that asks it to drain."""
        self._signs[gateway_id] = self._signs[gateway_id].asked_to_drain()
