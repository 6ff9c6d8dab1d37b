"""What a gateway holds, carries and drops."""

from __future__ import annotations

from typing import Final

from deploy.monitoring.grafana import Board, Row, Variable
from deploy.monitoring.queries import GW, HEAD, graph, rate, total

ITS: Final = 'gateway=~"$gateway"'
_CLIENTS: Final = (
    graph(
        "Connections",
        "Of clients, open now.",
        (total(f"{GW}_connections", "gateway", ITS), "{{gateway}}"),
    ),
    graph(
        "Connections in a second",
        "Accepted, closed at the limit, and those that gave way to others there.",
        (rate(f"{GW}_connections_accepted_total", "gateway", ITS), "{{gateway}} accepted"),
        (rate(f"{GW}_connections_refused_total", "gateway", ITS), "{{gateway}} refused"),
        (rate(f"{GW}_connections_evicted_total", "gateway", ITS), "{{gateway}} evicted"),
    ),
    graph(
        "Not served",
        "Requests without a good key, HTTP that could not be read, faults of the gateway's own.",
        (rate(f"{GW}_keys_refused_total", "gateway", ITS), "{{gateway}} key"),
        (rate(f"{GW}_bad_requests_total", "gateway", ITS), "{{gateway}} HTTP"),
        (rate(f"{GW}_broken_requests_total", "gateway", ITS), "{{gateway}} fault"),
        unit="reqps",
    ),
    graph(
        "Requests",
        "Under way, and waiting for a place.",
        (total(f"{GW}_in_flight", "gateway", ITS), "{{gateway}} under way"),
        (total(f"{GW}_queued", "gateway", ITS), "{{gateway}} waiting"),
    ),
    graph(
        "Bytes and events to clients",
        "In a second.",
        (rate(f"{GW}_sent_bytes_total", "gateway", ITS), "{{gateway}} bytes"),
        (rate(f"{GW}_events_total", "gateway", ITS), "{{gateway}} events"),
    ),
    graph(
        "TLS handshakes",
        "That came to an end, and of these those that failed.",
        (rate(f"{GW}_tls_handshakes_total", "gateway", ITS), "{{gateway}}"),
        (rate(f"{GW}_tls_handshakes_failed_total", "gateway", ITS), "{{gateway}} failed"),
    ),
)
_INSIDE: Final = (
    graph(
        "Bytes held",
        "By what they are of.",
        (total(f"{GW}_held_bytes", "gateway, of", ITS), "{{gateway}} {{of}}"),
        unit="bytes",
    ),
    graph(
        "Routes",
        "1: it hears the head. How many versions it is behind the head's routes.",
        (total(f"{GW}_control_connected", "gateway", ITS), "{{gateway}} hears the head"),
        (
            f"scalar(max({HEAD}_snapshot_version))"
            f" - max by (gateway) ({GW}_snapshot_version{{{ITS}}})",
            "{{gateway}} behind",
        ),
    ),
    graph(
        "Sessions to replicas",
        "Open now, of all its threads.",
        (total(f"{GW}_sessions", "gateway", ITS), "{{gateway}}"),
    ),
    graph(
        "Records for `penstock explain`",
        "Kept now, by kind.",
        (total(f"{GW}_explain_records", "gateway, kind", ITS), "{{gateway}} {{kind}}"),
    ),
    graph(
        "Records that left before an hour was over",
        "By why. docs/operate/alerts/PenstockExplainDrops.md.",
        (rate(f"{GW}_explain_dropped_total", "gateway, reason", ITS), "{{gateway}} {{reason}}"),
    ),
    graph(
        "Traces",
        "Sent to the collector in a second, and dropped, by why.",
        (rate(f"{GW}_traces_sent_total", "gateway", ITS), "{{gateway}} sent"),
        (rate(f"{GW}_traces_dropped_total", "gateway, reason", ITS), "{{gateway}} {{reason}}"),
    ),
)
BOARD: Final = Board(
    "gateway",
    "gateway",
    "What a gateway carries, holds and drops.",
    (Row("Clients", _CLIENTS), Row("Inside", _INSIDE)),
    (Variable("gateway", f"{GW}_control_connected"),),
)
