"""Who asks for what, and what it costs."""

from __future__ import annotations

from typing import Final

from deploy.monitoring.grafana import Board, Row, Variable
from deploy.monitoring.queries import GW, HEAD, graph, rate, share, total

ITS: Final = 'tenant=~"$tenant"'
_REQUESTS: Final = (
    graph(
        "Requests",
        "Ended in a second, by how.",
        (rate(f"{GW}_tenant_requests_total", "tenant, outcome", ITS), "{{tenant}} {{outcome}}"),
        unit="reqps",
    ),
    graph(
        "Refused by a limit of its own",
        "Of a minute, of a day, or of requests under way.",
        (rate(f"{GW}_tenant_limited_total", "tenant", ITS), "{{tenant}}"),
        unit="reqps",
    ),
    graph(
        "Failed, of all",
        "Not by their client's fault.",
        (
            share(
                f"{GW}_tenant_requests_total",
                f"{GW}_tenant_requests_total",
                "tenant",
                ITS,
                'outcome="failed"',
            ),
            "{{tenant}}",
        ),
        unit="percentunit",
    ),
    graph(
        "By deployment",
        "Requests that went to a replica, in a second.",
        (
            rate(f"{HEAD}_tenant_requests_total", "tenant, deployment", ITS),
            "{{tenant}} {{deployment}}",
        ),
        unit="reqps",
    ),
    graph(
        "Had its day",
        "1: its tokens or dollars of the day are used up.",
        (total(f"{HEAD}_tenant_used_up", "tenant, limit", ITS), "{{tenant}} {{limit}}"),
    ),
)
_COST: Final = (
    graph(
        "Tokens",
        "Read and written in a second.",
        (rate(f"{GW}_tenant_prompt_tokens_total", "tenant", ITS), "{{tenant}} prompt"),
        (rate(f"{GW}_tenant_completion_tokens_total", "tenant", ITS), "{{tenant}} completion"),
    ),
    graph(
        "Prompt tokens found in a cache",
        "Of all that were read.",
        (
            share(
                f"{GW}_tenant_cached_tokens_total",
                f"{GW}_tenant_prompt_tokens_total",
                "tenant",
                ITS,
            ),
            "{{tenant}}",
        ),
        unit="percentunit",
    ),
    graph(
        "Money",
        "US dollars since midnight UTC, where models have prices.",
        (
            total(f"{HEAD}_tenant_cost_usd_total", "tenant, deployment", ITS),
            "{{tenant}} {{deployment}}",
        ),
        unit="currencyUSD",
    ),
)
BOARD: Final = Board(
    "tenant",
    "tenant",
    "Who asks for what, and what it costs. `-`: requests without a key; `_other`: all tenants"
    " beyond the first two hundred.",
    (Row("Requests", _REQUESTS), Row("Tokens and money", _COST)),
    (Variable("tenant", f"{GW}_tenant_requests_total"),),
)
