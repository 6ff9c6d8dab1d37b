"""Adapters: which are asked for, where they are held, and what canaries say of them."""

from __future__ import annotations

from typing import Final

from deploy.monitoring.grafana import Board, Row, Variable
from deploy.monitoring.queries import HEAD, graph, number, rate, total

ITS: Final = 'adapter=~"$adapter"'
_ASKED: Final = (
    number("Versions", "That are registered.", f"sum({HEAD}_adapters)"),
    graph(
        "Requests",
        "That went to a replica, in a second.",
        (
            rate(f"{HEAD}_adapter_requests_total", "deployment, adapter", ITS),
            "{{deployment}}:{{adapter}}",
        ),
        unit="reqps",
    ),
    graph(
        "Tokens",
        "In a second; cached ones are of the prompt's.",
        (rate(f"{HEAD}_adapter_tokens_total", "adapter, kind", ITS), "{{adapter}} {{kind}}"),
    ),
    graph(
        "Money",
        "US dollars since midnight UTC, where models have prices.",
        (total(f"{HEAD}_adapter_cost_usd_total", "adapter", ITS), "{{adapter}}"),
        unit="currencyUSD",
    ),
    graph(
        "Where they are",
        "Ready replicas that hold the adapter.",
        (
            total(f"{HEAD}_adapter_replicas", "deployment, adapter", ITS),
            "{{deployment}}:{{adapter}}",
        ),
    ),
)
_CANARIES: Final = (
    graph(
        "Share of the candidate",
        "Of the sessions.",
        (f"sum by (canary) ({HEAD}_canary_permille) / 1000", "{{canary}}"),
        unit="percentunit",
    ),
    graph(
        "State",
        "1 for the state that a canary is in.",
        (f"sum by (canary, state) ({HEAD}_canary_state) > 0", "{{canary}} {{state}}"),
    ),
    graph(
        "Bad sessions, of all",
        "Of the present step, by arm.",
        (
            f"sum by (canary, arm) ({HEAD}_canary_bad_sessions)"
            f" / sum by (canary, arm) ({HEAD}_canary_sessions)",
            "{{canary}} {{arm}}",
        ),
        unit="percentunit",
    ),
)
BOARD: Final = Board(
    "adapters",
    "adapters",
    "Which adapters are asked for, where they are held, and what canaries say of them.",
    (Row("Adapters", _ASKED), Row("Canaries", _CANARIES)),
    (Variable("adapter", f"{HEAD}_adapter_replicas"),),
)
