"""Where Prometheus finds each process's metrics, as far as who asks can reach them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from penstock.control.node_addresses import LOOPBACK, is_loopback, is_wildcard
from penstock.control.state.cluster import ClusterView, GatewayState
from penstock.control.state.fleet.replica import NodeState

HEAD_JOB: Final = "penstock-head"


@dataclass(frozen=True, slots=True)
class ScrapeTarget:
    """One process that tells Prometheus of itself."""

    address: str  # host:port
    labels: Mapping[str, str]  # of all that it tells


def scrape_targets(view: ClusterView, head: str, asked_at: str) -> dict[str, ScrapeTarget]:
    """All that are known, by address.

    `head`: host:port of this head's own metrics, empty: none. `asked_at`: the host by which this
    head was reached. An address that means every interface is told as the host of its machine; one
    on the loopback is left out where who asks, or whose it is, is on another machine.
    """
    found: dict[str, ScrapeTarget] = {}
    for said, machine, labels in _processes(view, head):
        if (address := _reached(said, machine, asked_at)) and address not in found:
            found[address] = ScrapeTarget(address, labels)
    return found


def _processes(view: ClusterView, head: str) -> Iterator[tuple[str, str, Mapping[str, str]]]:
    """The address that each was told, the host of its machine as the head sees it, and labels. One
    that is silent is told of: that it does not answer is news."""
    yield head, LOOPBACK, {"job": HEAD_JOB}
    # Of two at one address, one of which takes the other's place, the newer one.
    for name, gateway in sorted(view.gateways.items(), reverse=True):
        if (report := gateway.report) and gateway.state is not GatewayState.STOPPED:
            labels = {"job": "penstock-gateway", "gateway": name}
            yield report.metrics_address, LOOPBACK if gateway.address else report.machine, labels
    for node_id, node in sorted(view.nodes.items()):
        if node.state is not NodeState.LOST:
            labels = {"job": "penstock-node", "node": node_id}
            yield node.facts.metrics_address, node.facts.host, labels


def _reached(said: str, machine: str, asked_at: str) -> str:
    """The address as who asks reaches it; empty: it does not."""
    host, _, port = said.rpartition(":")
    if is_wildcard(host):
        host = asked_at if is_loopback(machine) else machine
    elif is_loopback(host) and not is_loopback(machine):
        return ""
    if not host or not port.strip("0") or (is_loopback(host) and not is_loopback(asked_at)):
        return ""
    return f"{host}:{port}"
