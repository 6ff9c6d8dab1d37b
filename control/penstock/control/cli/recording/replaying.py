"""`penstock replay`: hands over to the evals' program, which knows nothing of control."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from penstock.control.cli.options import DataDir
from penstock.control.cli.outcome import explained
from penstock.control.data_dir import announced
from penstock.control.settings import DATA_DIR, GATEWAY_ADDRESS, reachable

PROGRAM = (sys.executable, "-m", "penstock.evals.main", "replay")
KEY = "PENSTOCK_API_KEY"


def replay(
    file: Annotated[Path, typer.Argument(help="The recording.")],
    target: Annotated[
        str | None,
        typer.Option(help="Address of what is to answer. Default: the gateway on this machine."),
    ] = None,
    api_key: Annotated[
        str | None, typer.Option(envvar=KEY, help="Its key, if it wants one.")
    ] = None,
    speed: Annotated[
        str | None,
        typer.Option(help="How many times as fast as recorded (1); max: as fast as possible."),
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Ask for this model. Default: as recorded.")
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Only so many, the first.")] = None,
    most_at_once: Annotated[
        int | None,
        typer.Option(help="Requests under way (1024), beyond which the next ones are late."),
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(help="Seconds of silence of an answer (600).")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for result.json and result.md.")] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit code 1 also when a request has no whole answer.")
    ] = False,
    data_dir: DataDir = Path(DATA_DIR),
) -> None:
    """Send what was recorded once more, with the gaps that lay between, to any endpoint.

    Example: penstock replay monday.jsonl --speed 2
    """
    with explained("replay"):
        values = {
            "--target": target or _gateway(data_dir),
            "--speed": speed,
            "--model": model,
            "--limit": limit,
            "--most-at-once": most_at_once,
            "--timeout": timeout,
            "--out": out,
        }
    words = [*PROGRAM, *_told(values), *(["--strict"] if strict else []), "--", str(file)]
    # A key in the environment is seen by no other user's `ps`.
    os.execve(PROGRAM[0], words, {**os.environ, **({} if api_key is None else {KEY: api_key})})


def _gateway(data_dir: Path) -> str:
    return f"http://{reachable(announced(data_dir, 'gateway') or GATEWAY_ADDRESS, flag='--target')}"


def _told(values: Mapping[str, object]) -> list[str]:
    return [f"{name}={value}" for name, value in values.items() if value is not None]
