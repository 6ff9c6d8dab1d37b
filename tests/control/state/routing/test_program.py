"""What a router program says of itself, read from its text alone."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.control.errors import InvalidSpec
from penstock.control.state.routing.program import (
    MOST_BYTES,
    ProgramFacts,
    check_args,
    check_program,
    digest_of,
)
from penstock.control.state.routing.program_setting import PROGRAM, Program, facts_of

BARE = "async def route(request, engines, stats):\n    return None\n"
WHOLE = """
'''Splits the work.'''
USES = {"remote_send", "prep_recv"}

def half(number):
    return number / 2

async def route(request, engines, stats, *, share=0.5, most=3, deep=False, to="decode", by=None):
    return RouteDecision(engines[0].replica)
"""


def route_with(parameters: str) -> str:
    return f"async def route({parameters}):\n    return None\n"


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        (BARE, ProgramFacts()),
        (
            WHOLE,
            ProgramFacts(
                ("prep_recv", "remote_send"),
                {"share": 0.5, "most": 3, "deep": False, "to": "decode", "by": None},
            ),
        ),
        (f'USES: tuple = ("tokenize",)\n{BARE}', ProgramFacts(("tokenize",))),
        (f"USES = set()\n{BARE}", ProgramFacts()),
        (route_with("a, b, c, /, *, share=-1"), ProgramFacts((), {"share": -1})),
    ],
)
def test_what_it_uses_and_takes_is_read(text: str, facts: ProgramFacts) -> None:
    assert check_program(text) == facts


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("async def route(", "no Python: line 1"),
        ("x = 1\0", "no Python: source code string cannot contain null bytes"),
        ("x = " + "-" * 200_000 + "1", "is nested too deeply"),
        ("x = a" + ".b" * 100_000, "is nested too deeply"),
        (route_with(f"request, engines, stats, *, share=0x{'f' * 400}"), "share has no number"),
        ("x = " + "(" * 5000, "no Python"),
        ("", "one function `async def route"),
        ("def route(request, engines, stats): ...", "one function `async def route"),
        (BARE + BARE, "one function `async def route"),
        (route_with("request, engines"), "takes request, engines and stats"),
        (route_with("request, engines, stats, share"), "takes request, engines and stats"),
        (route_with("request, engines, stats=None"), "takes request, engines and stats"),
        (route_with("request, engines, stats, *rest"), "takes request, engines and stats"),
        (route_with("request, engines, stats, **rest"), "takes request, engines and stats"),
        (route_with("request, engines, stats, *, share"), "parameter share has no number"),
        (route_with("request, engines, stats, *, share=[1]"), "parameter share has no number"),
        (route_with("request, engines, stats, *, share=len('x')"), "share has no number"),
        (f'USES = {{"fly"}}\n{BARE}', "has to say USES once, as a set of the names commit"),
        (f"USES = names()\n{BARE}", "has to say USES once"),
        (f'USES = {{"tokenize"}}\nUSES = {{"lookup"}}\n{BARE}', "has to say USES once"),
        (f"# {'x' * MOST_BYTES}\n{BARE}", "262,144 at most"),
    ],
)
def test_what_is_no_program_is_refused_with_the_cause(text: str, words: str) -> None:
    with pytest.raises(InvalidSpec, match=r"^program\.file ") as refused:
        check_program(text)
    assert words in str(refused.value)


def test_a_text_is_never_run() -> None:
    check_program(f"raise SystemExit('it ran')\n{BARE}")


@pytest.mark.parametrize(
    "args",
    [
        {"share": 0.1, "most": 4, "deep": True, "to": "x", "by": None},
        {"share": 1, "most": 1.5, "by": "session"},
        {},
    ],
)
def test_arguments_of_the_types_of_their_defaults_are_taken(args: dict[str, Any]) -> None:
    check_args("mine", check_program(WHOLE), args)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"shares": 1}, "mine has no such parameter; there are share, most, deep, to, by"),
        ({"share": "0.1"}, "program.share is '0.1': it must be a number, as 0.5 is"),
        ({"share": True}, "must be a number"),
        ({"share": float("nan")}, "must be a number"),
        ({"share": 10**400}, "must be a number"),
        ({"share": None}, "must be a number"),
        ({"deep": 1}, "must be true or false"),
        ({"to": 1}, "must be a text"),
        ({"to": "x" * 5000}, "must be a text of at most 4096"),
        ({"by": [1]}, "must be a number, text, true or false"),
    ],
)
def test_other_arguments_are_refused_with_those_that_there_are(
    args: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidSpec, match=r"^program\.") as refused:
        check_args("mine", check_program(WHOLE), args)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("said", "program"),
    [
        ({"name": "prefill_decode"}, Program(name="prefill_decode")),
        ({"module": "mine.routes", "args": {"b": 1, "a": 2}}, Program(module="mine.routes")),
        ({"file": BARE}, Program(digest=digest_of(BARE))),
        ({"file": BARE, "digest": digest_of(BARE), "name": ""}, Program(digest=digest_of(BARE))),
        ({"digest": digest_of(BARE)}, Program(digest=digest_of(BARE))),
        (None, None),
    ],
)
def test_a_program_is_said_in_one_of_three_ways(
    said: dict[str, Any] | None, program: Program | None
) -> None:
    found = PROGRAM.read(said)
    assert (found and found.known_as) == (program and program.known_as)
    assert PROGRAM.read(PROGRAM.plain(found)) == found, "documents have it without its text"


@pytest.mark.parametrize(
    "said",
    [
        {"args": {"a": 1}},
        {"name": "a", "module": "b"},
        {"name": "a", "file": BARE},
        {"name": "../secret"},
        {"module": "os; import"},
        {"digest": "x"},
        {"file": BARE, "digest": digest_of("other")},
        {"file": "no program"},
    ],
)
def test_any_other_way_to_say_one_is_refused(said: dict[str, Any]) -> None:
    with pytest.raises(InvalidSpec, match="program"):
        PROGRAM.read(said)


def test_facts_come_from_the_text_that_is_meant() -> None:
    shipped, stored = {"mine": WHOLE}, {digest_of(WHOLE): WHOLE}
    uses = ("prep_recv", "remote_send")
    for program in (Program(name="mine"), Program(digest=digest_of(WHOLE)), Program(text=WHOLE)):
        facts = facts_of(program, stored, shipped)
        assert facts
        assert facts.uses == uses
    assert facts_of(Program(name="gone"), stored, shipped) is None
    assert facts_of(Program(digest=digest_of(BARE)), stored, shipped) is None
    of_module = facts_of(Program(module="mine"), {}, {})
    assert of_module
    assert "remote_send" in of_module.uses
