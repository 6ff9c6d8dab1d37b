"""PromQL that our panels are made of. Names of metrics: docs/reference/metrics.md."""

from __future__ import annotations

from typing import Final

from deploy.monitoring.grafana import RATE, Panel, Query

GW: Final = "penstock_gateway"
HEAD: Final = "penstock_head"
NODE: Final = "penstock_node"
REPLICA: Final = "penstock_replica"
GEN_AI: Final = "gen_ai_server"
OURS: Final = 'job=~"penstock-.+"'


def graph(title: str, says: str, *queries: tuple[str, str], unit: str = "short") -> Panel:
    """Lines over time, a third of the width; each query with what its lines are called."""
    return Panel(title, says, tuple(Query(*each) for each in queries), unit)


def number(title: str, says: str, expr: str, unit: str = "short") -> Panel:
    """The latest value in large, a quarter of the width."""
    return Panel(title, says, (Query(expr, ""),), unit, "stat", 6)


def rate(metric: str, by: str, where: str = "") -> str:
    """How much a counter grows in a second."""
    return f"sum by ({by}) (rate({metric}{_braces(where)}[{RATE}]))"


def growth(metric: str, by: str, where: str = "", over: str = RATE) -> str:
    """How much a counter grows in a while."""
    return f"sum by ({by}) (increase({metric}{_braces(where)}[{over}]))"


def total(metric: str, by: str, where: str = "") -> str:
    """The sum of a gauge."""
    return f"sum by ({by}) ({metric}{_braces(where)})"


def share(of: str, among: str, by: str, where: str = "", of_where: str = "") -> str:
    """How much one counter grows for each that another does. `of_where`: only these of the first;
    where there are none it is 0."""
    both, all_of_it = ",".join(filter(None, (where, of_where))), rate(among, by, where)
    of_it = f"({rate(of, by, both)} or 0 * {all_of_it})" if of_where else rate(of, by, both)
    return f"{of_it} / {all_of_it}"


def quantile(q: float, metric: str, by: str, where: str = "") -> str:
    """Of a histogram: the share `q` of what it observed is at most this."""
    return f"histogram_quantile({q}, {rate(f'{metric}_bucket', f'le, {by}', where)})"


def p50_p99(metric: str, by: str, where: str = "") -> tuple[tuple[str, str], ...]:
    """What half of all, and ninety-nine of a hundred, are within."""
    return tuple(
        (quantile(q, metric, by, where), f"{{{{{by}}}}} p{q * 100:.0f}") for q in (0.5, 0.99)
    )


def _braces(where: str) -> str:
    return f"{{{where}}}" if where else ""
