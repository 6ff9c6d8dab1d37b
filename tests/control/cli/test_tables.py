"""Lists for people, at every width and without one."""

from __future__ import annotations

import pytest

from penstock.control.cli.fleet import status
from penstock.control.cli.routing import quarantine
from penstock.control.cli.tables import Note, listing
from penstock.control.cli.tenancy import tokens
from tests.control.cli.drawn import drawn, piped

LONG = "a-name-that-is-longer-than-most-of-a-narrow-terminal"
LISTS = {
    "Deployments": (
        status.DEPLOYMENT_COLUMNS,
        ("qwen", "degraded", "1/2", "vllm", "Qwen/Qwen2.5-0.5B-Instruct", "pirate, json"),
    ),
    "Replicas": (
        status.REPLICA_COLUMNS,
        ("qwen-a7e794", "backoff", "gpu-machine-7", "10.20.30.40:36183", "4123456", "12", "1.8"),
    ),
    "Nodes": (
        status.NODE_COLUMNS,
        (
            *("gpu-machine-7", "silent", "10.20.30.40:42579", "4123456", "128", "8"),
            *("0.1 of 503.5 GiB", "1 of 1"),
        ),
    ),
    "Gateways": (
        status.GATEWAY_COLUMNS,
        ("gw-1.2", "unresponsive", "127.0.0.1:8080", "4123456", "1", "1024", "64", "123456789"),
    ),
    "Tokens": (
        tokens.COLUMNS,
        ("6afe3db7", "operator", LONG, "2026-11-22 02:16", "2026-11-22 02:16", ""),
    ),
    "Quarantine": (
        quarantine.COLUMNS,
        ("3f9ac0d21b44", "quarantined", LONG, "/v1/chat/completions", "2", "2026-11-22 02:16"),
    ),
}


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
@pytest.mark.parametrize("title", LISTS)
def test_headers_ids_states_addresses_and_numbers_are_whole_at_every_width(
    title: str, width: int
) -> None:
    columns, row = LISTS[title]
    text = drawn(listing(title, columns, [row]), width=width)
    assert max(map(len, text.splitlines())) <= width
    for column, cell in zip(columns, row, strict=True):
        if column not in ("model", "adapters", "name", "deployment", "path"):
            assert cell in text
        if cell and column in columns[2:]:
            assert column in text


@pytest.mark.parametrize("title", LISTS)
def test_a_pipe_gets_one_line_for_each_row_and_no_boxes(title: str) -> None:
    columns, row = LISTS[title]
    first, header, line = piped(listing(title, columns, [row])).splitlines()
    assert first == title
    assert " ".join(header.split()) == " ".join(columns)
    assert all(cell in line for cell in row)
    assert line == line.rstrip()


def test_what_is_too_long_for_a_table_is_broken_in_its_own_column() -> None:
    columns, row = LISTS["Tokens"]
    lines = drawn(listing("Tokens", columns, [row]), width=80).splitlines()
    assert lines[1].split() == ["id", "role", "name", "created", "last", "used", "revoked"]
    assert LONG in "".join(line[20:36].strip() for line in lines[2:])


def test_a_note_is_broken_on_a_terminal_and_is_one_line_in_a_pipe() -> None:
    words = "the engine died: its process ended with signal 4 while it loaded the weights"
    assert max(map(len, drawn(Note("qwen", words), width=40).splitlines())) <= 40
    assert piped(Note("qwen", words)) == f"  qwen: {words}\n"


def test_markup_in_what_a_program_said_is_shown_as_it_is() -> None:
    assert "[red]died[/]" in piped(Note("qwen", "[red]died[/]"))
    assert "[bold]" in drawn(listing("Nodes", ("id", "state"), [("[bold]", "ready")]), width=80)


def test_lists_stand_apart() -> None:
    one = listing("Nodes", ("id", "state"), [("n", "ready")])
    assert piped(one, listing("Gateways", ("id", "state"), [])).splitlines()[-2:] == [
        "",
        "Gateways: none",
    ]
