"""Files of a run: what it reads, and the reports that it leaves."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock.evals.comparison.declared import from_toml, from_word
from penstock.evals.errors import EvalError


def read(path: Path) -> bytes:
    """Its bytes. Raises `EvalError`."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise EvalError(f"{path} cannot be read: {error.strerror}") from error


def declared(told: Sequence[str]) -> dict[str, Any]:
    """What `--thresholds` declare, each a file or `key=value`; later ones win. Raises
    `EvalError`."""
    found: dict[str, Any] = {}
    for each in told:
        if "=" in each and not Path(each).exists():
            found |= from_word(each)
        else:
            found |= from_toml(read(Path(each)).decode(errors="replace"))
    return found


def write_reports(out: Path, report: Mapping[str, Any], markdown: str, page: str) -> None:
    """Writes `report.json`, `.md` and `.html` to a folder. Raises `EvalError`."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / "report.json").write_text(json.dumps(report, indent=1) + "\n")
        (out / "report.md").write_text(markdown, encoding="utf-8")
        (out / "report.html").write_text(page, encoding="utf-8")
    except OSError as error:
        raise EvalError(f"the reports cannot be written to {out}: {error}") from error
