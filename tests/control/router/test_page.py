"""What docs/operate/router_programs.md says of programs is what they may do."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from penstock.control.router import asks, logs, sandbox, stats
from penstock.control.router.api import (
    Engine,
    EngineGroup,
    Engines,
    KvAddress,
    Request,
    Sent,
    Tokenized,
)
from penstock.control.router.program import program_of
from penstock.control.router.stats import Stats
from penstock.control.shipped_programs import shipped_programs
from penstock.control.state.routing.program import check_program
from tests.fakes.router_gateway import routing, view

PAGE = (Path(__file__).parents[3] / "docs" / "operate" / "router_programs.md").read_text()
EXAMPLE = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0]


def told_of(name: str) -> bool:
    """Whether the page names it as code, alone or with what it takes."""
    return re.search(rf"`(await |engines\.)?{name}(\(.*?\))?`", PAGE) is not None


def public(kind: type) -> set[str]:
    """What a program may use of it."""
    own = {*vars(kind), *getattr(kind, "__slots__", ())}
    return {name for name in own if not name.startswith("_")}


@pytest.mark.parametrize("kind", [Request, Engine, EngineGroup, Engines, Stats])
def test_all_that_a_program_may_use_is_told_of(kind: type) -> None:
    assert {name for name in public(kind) if not told_of(name)} == set()


@pytest.mark.parametrize("kind", [KvAddress, Sent, Tokenized])
def test_all_that_an_engine_call_gives_is_told_of(kind: type) -> None:
    assert {each.name for each in fields(kind) if not told_of(each.name)} == set()


def test_each_program_that_ships_is_told_of_with_its_arguments() -> None:
    for name, text in shipped_programs().items():
        row = next(line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |"))
        for arg, default in check_program(text).args.items():
            assert f"`{arg}` ({default})" in row, row


def test_the_bounds_are_those_that_hold() -> None:
    words = " ".join(PAGE.split())
    for said in (
        f"{asks.MOST_CALLS} of one request, {asks.MOST_AT_ONCE} at once",
        f"a `MemoryError` at {sandbox.MEMORY >> 20} MiB",
        f"an error at {sandbox.OPEN_FILES}",
        f"{logs.OUTPUT_A_MINUTE >> 20} MiB of its log a minute",
        f"{stats.MOST_KEYS:,} keys of {stats.MOST_NAMES} values, texts of {stats.MOST_TEXT}",
    ):
        assert said in words


async def test_the_example_does_what_is_said_of_it() -> None:
    assert check_program(EXAMPLE).args == {"long": 2000}
    assert program_of(EXAMPLE).summary
    async with routing(EXAMPLE) as gateway:
        engines = view("p", "prefill"), view("d", "decode")
        short = await gateway.decides(*engines, estimated_tokens=100)
        assert (short.replica_id, gateway.calls) == ("d", [])
        long = await gateway.decides(*engines, estimated_tokens=5000)
        assert (long.replica_id, long.seq_id, len(gateway.calls)) == ("d", "1", 1)
