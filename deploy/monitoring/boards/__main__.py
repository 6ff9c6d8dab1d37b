"""Writes the dashboards' JSON anew: .venv/bin/python -m deploy.monitoring.boards"""

from __future__ import annotations

from pathlib import Path

from deploy.monitoring.boards import BOARDS
from deploy.monitoring.grafana import text

FOLDER = Path(__file__).parents[1] / "dashboards"

if __name__ == "__main__":
    for board in BOARDS:
        (FOLDER / f"{board.name}.json").write_text(text(board))
