"""What a Grafana dashboard of ours is made of, and its JSON. Pure.

A board is rows of panels; each panel asks Prometheus one or more queries. Where they stand, which
data source they ask and how lines look is the same for all, and said here once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

SCHEMA_VERSION = 39  # of Grafana 10 and later
COLUMNS = 24
HEIGHT = 8
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
RATE = "$__rate_interval"
EVERY_VALUE = ".*"


@dataclass(frozen=True, slots=True)
class Query:
    """PromQL, and what its lines are called: labels in {{braces}}."""

    expr: str
    legend: str


@dataclass(frozen=True, slots=True)
class Panel:
    """One picture. `says`: what it tells, for who meets it first; `unit`: in Grafana's words."""

    title: str
    says: str
    queries: tuple[Query, ...]
    unit: str = "short"
    kind: str = "timeseries"  # or "stat"
    width: int = 8


@dataclass(frozen=True, slots=True)
class Row:
    """Panels under one heading."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Variable:
    """What a reader chooses at the top: values of a label of a metric."""

    name: str
    metric: str


@dataclass(frozen=True, slots=True)
class Board:
    """One dashboard."""

    name: str  # of its file
    title: str
    says: str
    rows: tuple[Row, ...]
    variables: tuple[Variable, ...] = ()


def document(board: Board) -> dict[str, Any]:
    """The board as Grafana imports it."""
    return {
        "uid": f"penstock-{board.name}",
        "title": f"Penstock: {board.title}",
        "description": board.says,
        "tags": ["penstock"],
        "schemaVersion": SCHEMA_VERSION,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "",
        "annotations": {"list": [_firing()]},
        "links": [_to_others()],
        "templating": {"list": [_source(), *map(_variable, board.variables)]},
        "panels": list(_placed(board.rows)),
    }


def text(board: Board) -> str:
    """The document as its file has it."""
    return json.dumps(document(board), indent=1) + "\n"


def _placed(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Panels from left to right, under the headings of their rows."""
    number, top = 0, 0
    for row in rows:
        number += 1
        place = {"h": 1, "w": COLUMNS, "x": 0, "y": top}
        heading = {"type": "row", "title": row.title, "collapsed": False, "panels": []}
        yield {"id": number, **heading, "gridPos": place}
        top, left = top + 1, 0
        for panel in row.panels:
            if left + panel.width > COLUMNS:
                top, left = top + HEIGHT, 0
            number += 1
            place = {"h": HEIGHT, "w": panel.width, "x": left, "y": top}
            yield {"id": number, **_panel(panel), "gridPos": place}
            left += panel.width
        top += HEIGHT


def _panel(panel: Panel) -> dict[str, Any]:
    legend = {"displayMode": "list", "placement": "bottom", "showLegend": True}
    looks: dict[str, Any] = {"legend": legend, "tooltip": {"mode": "multi", "sort": "desc"}}
    if panel.kind == "stat":
        looks = {"reduceOptions": {"calcs": ["lastNotNull"]}, "textMode": "value_and_name"}
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.says,
        "datasource": SOURCE,
        "targets": [
            {
                "refId": chr(ord("A") + number),
                "datasource": SOURCE,
                "expr": query.expr,
                "legendFormat": query.legend,
                "range": True,
                "exemplar": "_bucket" in query.expr,
            }
            for number, query in enumerate(panel.queries)
        ],
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": looks,
    }


def _source() -> dict[str, Any]:
    return {
        "name": "datasource",
        "type": "datasource",
        "label": "Prometheus",
        "query": "prometheus",
    }


def _variable(it: Variable) -> dict[str, Any]:
    return {
        "name": it.name,
        "type": "query",
        "datasource": SOURCE,
        "query": f"label_values({it.metric}, {it.name})",
        "refresh": 2,  # whenever the time changes
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": EVERY_VALUE,
    }


def _firing() -> dict[str, Any]:
    """Alerts as marks in every picture."""
    return {
        "name": "Alerts",
        "datasource": SOURCE,
        "enable": True,
        "iconColor": "red",
        "expr": 'ALERTS{alertname=~"Penstock.+",alertstate="firing"}',
        "titleFormat": "{{alertname}}",
        "textFormat": "{{deployment}}{{instance}}",
    }


def _to_others() -> dict[str, Any]:
    return {
        "type": "dashboards",
        "title": "Penstock",
        "icon": "external link",
        "tooltip": "",
        "tags": ["penstock"],
        "asDropdown": True,
        "targetBlank": False,
        "includeVars": True,
        "keepTime": True,
    }
