"""Whether all is well, what is served, and what is left."""

from __future__ import annotations

from typing import Final

from deploy.monitoring.grafana import RATE, Board, Row
from deploy.monitoring.queries import (
    GEN_AI,
    GW,
    HEAD,
    NODE,
    OURS,
    graph,
    growth,
    number,
    p50_p99,
    quantile,
    rate,
    share,
    total,
)

_NOW: Final = (
    number(
        "Alerts",
        "That fire. What each means: docs/operate/alerts.",
        'count(ALERTS{alertname=~"Penstock.+",alertstate="firing"}) or vector(0)',
    ),
    number("Problems", "What `penstock status` shows first.", f"sum({HEAD}_problems)"),
    number(
        "Processes that tell nothing",
        "Heads, gateways and node agents that do not answer Prometheus.",
        f"count(up{{{OURS}}} == 0) or vector(0)",
    ),
    number(
        "Replicas ready, of those wanted",
        "Of all deployments together.",
        f"sum({HEAD}_deployment_replicas_ready) / sum({HEAD}_deployment_replicas_wanted)",
        "percentunit",
    ),
)
_TRAFFIC: Final = (
    graph(
        "Requests",
        "Ended in a second, by how.",
        (rate(f"{GW}_requests_total", "outcome"), "{{outcome}}"),
        unit="reqps",
    ),
    graph(
        "Refused",
        "By why: docs/reference/gateway/refusals.md.",
        (rate(f"{GW}_drops_total", "reason"), "{{reason}}"),
        unit="reqps",
    ),
    graph(
        "Failed, of all",
        "Not by their client's fault.",
        (
            share(
                f"{GW}_requests_total",
                f"{GW}_requests_total",
                "deployment",
                of_where='outcome="failed"',
            ),
            "{{deployment}}",
        ),
        unit="percentunit",
    ),
    graph(
        "First token",
        "Request read to first answer byte, the wait in the queue included.",
        *p50_p99(f"{GEN_AI}_time_to_first_token_seconds", "deployment"),
        unit="s",
    ),
    graph(
        "Tokens",
        "Read and written in a second.",
        (f"sum(rate({GW}_prompt_tokens_total[{RATE}]))", "prompt"),
        (f"sum(rate({GW}_completion_tokens_total[{RATE}]))", "completion"),
    ),
    graph(
        "Waiting, and at replicas",
        "Requests, at all gateways.",
        (total(f"{HEAD}_deployment_queued", "deployment"), "{{deployment}} waiting"),
        (total(f"{HEAD}_deployment_in_flight", "deployment"), "{{deployment}} running"),
    ),
)
_RUNS: Final = (
    graph(
        "Problems",
        "By kind, as `penstock status` lists them.",
        (total(f"{HEAD}_problems", "kind"), "{{kind}}"),
    ),
    graph("Replicas", "By state.", (total(f"{HEAD}_replicas", "phase"), "{{phase}}")),
    graph(
        "Nodes, gateways",
        "Nodes by state, gateways that report, processes that answer Prometheus.",
        (total(f"{HEAD}_nodes", "state"), "nodes {{state}}"),
        (f"sum({HEAD}_gateways_alive)", "gateways that report"),
        (total("up", "job", OURS), "{{job}} up"),
    ),
    graph(
        "Money",
        "US dollars an hour, where models have prices.",
        (f"3600 * {rate(f'{HEAD}_tenant_cost_usd_total', 'deployment')}", "{{deployment}}"),
        unit="currencyUSD",
    ),
    graph(
        "Replicas that began again",
        "After they had ended by themselves.",
        (growth(f"{NODE}_replica_restarts_total", "deployment"), "{{deployment}}"),
    ),
    graph(
        "The head's own work",
        "A round of its reconcile loop, and a transaction of its store.",
        (quantile(0.99, f"{HEAD}_reconcile_seconds", "job"), "round p99"),
        (quantile(0.99, f"{HEAD}_store_write_seconds", "job"), "write p99"),
        unit="s",
    ),
)
_MACHINES: Final = (
    graph(
        "Processors at work",
        "Share of each machine's cores.",
        (f"1 - rate({NODE}_cpu_idle_seconds_total[{RATE}]) / {NODE}_cpus", "{{node}}"),
        unit="percentunit",
    ),
    graph(
        "Memory left",
        "That new processes can have.",
        (total(f"{NODE}_memory_available_bytes", "node"), "{{node}}"),
        unit="bytes",
    ),
    graph(
        "Memory of replicas",
        "Of their processes; pages that several share count by their part.",
        (total(f"{NODE}_replica_memory_bytes", "replica"), "{{replica}}"),
        unit="bytes",
    ),
    graph(
        "Accelerators' memory in use",
        "By whichever process.",
        (f"{NODE}_gpu_memory_used_bytes / {NODE}_gpu_memory_bytes", "{{node}} {{gpu}}"),
        unit="percentunit",
    ),
    graph(
        "Replicas on accelerators",
        "Memory that a replica's processes hold there.",
        (total(f"{NODE}_replica_gpu_memory_bytes", "replica"), "{{replica}}"),
        unit="bytes",
    ),
)
BOARD: Final = Board(
    "fleet",
    "fleet",
    "Whether all is well, what is served, and what is left.",
    (
        Row("Now", _NOW),
        Row("Traffic", _TRAFFIC),
        Row("What runs", _RUNS),
        Row("Machines", _MACHINES),
    ),
)
