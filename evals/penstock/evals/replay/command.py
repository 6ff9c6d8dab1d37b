"""`evals replay`: a recording, sent once more."""

from __future__ import annotations

import json
import math
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import httpx
import typer

from penstock.evals import machine
from penstock.evals.endpoint import Endpoint, at_url, request
from penstock.evals.errors import EvalError
from penstock.evals.options import told_in_a_line
from penstock.evals.recording import Recording
from penstock.evals.replay.sending import Replay, send
from penstock.evals.replay.summary import Ending, Summary, as_dict, as_markdown, summary

MOST_SPEED = "max"


def replay(
    file: Annotated[Path, typer.Argument(help="The recording.")],
    target: Annotated[str, typer.Option(help="Address of what is to answer.")],
    api_key: Annotated[
        str, typer.Option(envvar="PENSTOCK_API_KEY", help="Its key, if it wants one.")
    ] = "",
    speed: Annotated[
        str, typer.Option(help="How many times as fast as recorded; max: as fast as possible.")
    ] = "1",
    model: Annotated[str, typer.Option(help="Ask for this model. Default: as recorded.")] = "",
    limit: Annotated[int | None, typer.Option(min=1, help="Only so many, the first.")] = None,
    most_at_once: Annotated[
        int, typer.Option(min=1, help="Requests under way, beyond which the next ones are late.")
    ] = 1024,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds of silence of an answer.")] = 600.0,
    out: Annotated[Path | None, typer.Option(help="Folder for result.json and result.md.")] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit code 1 also when a request has no whole answer.")
    ] = False,
) -> None:
    """Send what was recorded once more, with the gaps that lay between, to any endpoint."""
    with told_in_a_line():
        at = Endpoint(_address(target), model, api_key)
        how = Replay(at, _speed(speed), most_at_once, timeout)
        with Recording(file, limit) as recording:
            _check(at)
            total = _replay(recording, how, out)
    nothing = total.endings.get(Ending.NO_ANSWER) == total.requests
    raise typer.Exit(1 if nothing or (strict and total.failed) else 0)


def _replay(recording: Recording, how: Replay, out: Path | None) -> Summary:
    began = time.perf_counter()
    outcomes = send(recording.requests(), how)
    total = summary(outcomes, time.perf_counter() - began)
    pace = "as fast as possible" if how.speed is None else f"at {how.speed:g} times their speed"
    markdown = as_markdown(outcomes, total, recording.header, str(how.target), pace)
    typer.echo(markdown)
    if out is not None:
        facts = asdict(machine.facts(Path(__file__).parent))
        found = {"machine": facts, "results": as_dict(outcomes, total, recording.header)}
        _keep(out, json.dumps(found, indent=1), markdown)
    return total


def _keep(out: Path, result: str, markdown: str) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / "result.json").write_text(result + "\n", encoding="utf-8")
        (out / "result.md").write_text(markdown + "\n", encoding="utf-8")
    except OSError as error:
        raise EvalError(f"{out} cannot be written to: {error.strerror}") from error


def _speed(told: str) -> float | None:
    if told == MOST_SPEED:
        return None
    try:
        speed = float(told)
    except ValueError:
        speed = 0.0
    if not math.isfinite(speed) or speed <= 0:
        raise EvalError(f"--speed {told}: must be a number above 0, or {MOST_SPEED}")
    return speed


def _address(told: str) -> str:
    url = at_url(told if "://" in told else f"http://{told}")
    if not url.startswith(("http://", "https://")):
        raise EvalError(f"--target {told}: must be an http or https address")
    return url


def _check(target: Endpoint) -> None:
    """Whatever it answers, it is there; and a key that is no good is said once, not a thousand
    times."""
    url = f"{target.url}/v1/models"
    try:
        reply = request("GET", url, target.key, timeout=30)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise EvalError(f"{target.url} does not answer: {error!r}") from error
    if reply.status_code == 401:
        raise EvalError(f"{url} answered 401: name a key by --api-key or PENSTOCK_API_KEY")
