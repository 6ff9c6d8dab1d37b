"""`penstock program`: router programs, those that ship and files, before they route anybody."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.control.cli.options import AsJson
from penstock.control.cli.outcome import explained
from penstock.control.cli.tables import listing, show
from penstock.control.errors import InvalidInput, NotFound
from penstock.control.router.program import (
    BadProgram,
    Program,
    digest_of,
    program_of,
)
from penstock.control.router.simulated.load import Arrival, BadRecording, made_up, recorded
from penstock.control.router.simulated.trial import Figures, Outcome, Trial, power_of_two
from penstock.control.router.simulated.trial import try_program as tried
from penstock.control.shipped_programs import shipped_programs
from penstock.control.state.routing.program import check_args, check_program

program = typer.Typer(
    name="program",
    no_args_is_help=True,
    help="Programs that say where requests go: list, test. They are set by `penstock set`.",
)

SHOWN = 20  # requests, in a terminal
SHORT = 12  # digits of a digest
LIST = ("name", "digest", "asks engines to", "arguments", "what it does")
DECIDED = ("request", "prompt", "engine", "begins at", "calls", "moved", "TTFT ms", "total ms", "")
COST = ("program", "TTFT ms", "p99", "total ms", "p99", "moved", "computed", "left to gateway")

Count = Annotated[int, typer.Option(help="How many requests are made up, or are replayed.", min=1)]
Rate = Annotated[float, typer.Option(help="Of them, each second.", min=0.001)]
Prompt = Annotated[int, typer.Option(help="Tokens of each prompt.", min=1)]
Answer = Annotated[int, typer.Option(help="Tokens of each answer.", min=1)]
Sessions = Annotated[
    int, typer.Option(help="They are of so many sessions, whose prompts begin alike; 0: none.")
]
Replay = Annotated[
    Path | None,
    typer.Option(help="A recording: its lengths, times and sessions, in place of made-up ones."),
]
EngineCount = Annotated[int, typer.Option(help="How many engines there are.", min=1, max=64)]
PrefillCount = Annotated[
    int, typer.Option(help="How many of them have role prefill, the others decode; 0: no roles.")
]
Args = Annotated[
    list[str] | None,
    typer.Option("--arg", help="An argument of the program. Repeatable.", metavar="KEY=VALUE"),
]


@program.command("list")
def list_programs(as_json: AsJson = False) -> None:
    """Show the programs that ship with Penstock.

    Example: penstock program list
    """
    found = [_described(name, text) for name, text in shipped_programs().items()]
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    rows = [
        (
            it["name"],
            it["digest"][:SHORT],
            " ".join(it["uses"]),
            " ".join(f"{name}={value}" for name, value in it["args"].items()),
            it["summary"],
        )
        for it in found
    ]
    show(listing("Programs", LIST, rows))


@program.command("test")
def try_out(
    name: Annotated[str, typer.Argument(help="One that ships, or a file.", metavar="PROGRAM")],
    arg: Args = None,
    replay: Replay = None,
    requests: Count = 200,
    rate: Rate = 2.8,
    prompt: Prompt = 3000,
    answer: Answer = 100,
    sessions: Sessions = 0,
    engines: EngineCount = 2,
    prefill: PrefillCount = 0,
    as_json: AsJson = False,
) -> None:
    """Run a program before simulated engines: what it decides, and what that costs.

    Beside it the same requests are sent by power_of_two to as many engines without roles. Times are
    those of a model of engines: 8B parameters on A100 cards.

    Example: penstock program test balanced_prefill_decode --engines 2 --prefill 1
    """
    with explained("program test"):
        if not 0 <= prefill < engines:
            raise InvalidInput(f"--prefill is {prefill}: it must be 0 to {engines - 1}")
        text, ours = _text(name), name.removesuffix(".py")
        facts, args = check_program(text), dict(map(_pair, arg or ()))
        check_args(name, facts, args)
        load = _recorded(replay, requests) if replay else None
        load = load or made_up(requests, rate, prompt, answer, sessions)
        roles = ["prefill"] * prefill + ["decode" if prefill else ""] * (engines - prefill)
        of_it = tried(_loaded(text, Path(ours).name), args, load, roles)
        beside = tried(power_of_two(), {}, load, [""] * engines)
    if as_json:
        typer.echo(json.dumps(_told(of_it, beside), indent=2))
        return
    rows = [_row(number, each) for number, each in enumerate(of_it.outcomes[:SHOWN], 1)]
    costs = [_cost(Path(ours).name, of_it.figures), _cost("power_of_two", beside.figures)]
    title = f"Decisions, the first {len(rows)} of {len(load)}"
    show(listing(title, DECIDED, rows), listing("Costs", COST, costs))


def _described(name: str, text: str) -> dict[str, Any]:
    facts = check_program(text)
    summary = " ".join((_loaded(text, name).summary).split())
    return {
        "name": name,
        "digest": digest_of(text),
        "uses": list(facts.uses),
        "args": dict(facts.args),
        "summary": summary,
    }


def _text(name: str) -> str:
    ships = shipped_programs()
    if name in ships:
        return ships[name]
    try:
        return Path(name).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        known = ", ".join(ships)
        raise NotFound(f"{name} is neither a file that can be read nor one of {known}") from error


def _loaded(text: str, name: str) -> Program:
    try:
        return program_of(text, name)
    except BadProgram as error:
        raise InvalidInput(f"{name} cannot be run: {error}") from error


def _recorded(path: Path, limit: int) -> list[Arrival]:
    try:
        with path.open("rb") as lines:
            return recorded(lines, limit)
    except (OSError, BadRecording) as error:
        raise InvalidInput(f"--replay {path}: {error}") from error


def _pair(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _row(number: int, it: Outcome) -> tuple[str, ...]:
    times = (f"{each * 1000:.0f}" for each in (it.ttft, it.total))
    numbers = (str(number), str(it.prompt), it.engine, str(it.begin))
    return (*numbers, " ".join(it.calls), str(it.moved), *times, it.trouble)


def _cost(name: str, it: Figures) -> tuple[str, ...]:
    seconds = (it.ttft_mean, it.ttft_p99, it.total_mean, it.total_p99)
    times = [f"{each * 1000:.0f}" for each in seconds]
    return (name, *times, str(it.moved), str(it.computed), str(it.failed))


def _told(of_it: Trial, beside: Trial) -> dict[str, Any]:
    return {
        "requests": [asdict(each) for each in of_it.outcomes],
        "figures": asdict(of_it.figures),
        "power_of_two": asdict(beside.figures),
    }
