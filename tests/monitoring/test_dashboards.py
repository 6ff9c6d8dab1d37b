"""The dashboards that are shipped: as described, as Grafana takes them, of metrics that are told.

Grafana itself is not run. That each query returns data, tests/e2e/test_prometheus.py says.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from deploy.monitoring.boards import BOARDS
from deploy.monitoring.boards.__main__ import FOLDER
from deploy.monitoring.grafana import Board, text
from tests.monitoring.shipped import RULES, asked_of_all, declared, names_in, recorded

SCHEMA = json.loads((Path(__file__).parent / "grafana.schema.json").read_text())
QUERY = {**SCHEMA, "$ref": "#/definitions/Dataquery"}


def faults(what: Any, schema: dict[str, Any]) -> list[str]:
    """What a schema has against it."""
    return [f"{it.json_path}: {it.message}" for it in Draft7Validator(schema).iter_errors(what)]


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_the_json_is_what_is_described(board: Board) -> None:
    said = (FOLDER / f"{board.name}.json").read_text()
    assert said == text(board), "write it anew: .venv/bin/python -m deploy.monitoring.boards"


def test_no_dashboard_is_left_over() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == {board.name for board in BOARDS}


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_grafanas_own_schema_has_nothing_against_it(board: Board) -> None:
    document = json.loads(text(board))
    assert faults(document, SCHEMA) == []
    asked = [query for panel in document["panels"] for query in panel.get("targets", ())]
    assert asked
    assert [fault for query in asked for fault in faults(query, QUERY)] == []


def test_a_field_that_grafana_does_not_know_is_found() -> None:
    document = json.loads(text(BOARDS[0]))
    document["panels"][0]["heigth"] = 8
    assert faults(document, SCHEMA)


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_a_dashboard_asks_for_metrics_that_are_told(board: Board) -> None:
    asked = {name for expr in asked_of_all(board) for name in names_in(expr)}
    assert asked
    assert asked - declared() - recorded(*RULES.glob("*.yml")) == set()
