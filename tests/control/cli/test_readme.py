"""What the README says to paste about deployments and shadows, a real admin API takes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from penstock.control.admin.rollout.deployment_settings import SETTINGS
from penstock.control.declared.fields import named
from penstock.control.declared.listing import table
from penstock.control.state.shadow.comparing import Account
from tests.control.cli.conftest import AskedHead

README = Path(__file__).parents[3] / "README.md"
PENSTOCK = ".venv/bin/penstock"
KNOWN = ("penstock-mini", "chat", "cloud")  # what else the examples change


def pasted(section: str) -> list[list[str]]:
    """The arguments of each `penstock` in a section's shell blocks."""
    text = README.read_text().partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    typed = [line.partition(" > ")[0] for line in lines if line.startswith(PENSTOCK)]
    return [shlex.split(line, comments=True)[1:] for line in typed]


def test_the_table_of_settings_is_what_is_declared() -> None:
    declared = table(named(*SETTINGS))
    assert declared in README.read_text(), f"the README is to say:\n{declared}"


@pytest.mark.parametrize(
    ("section", "verbs"),
    [
        ("When a deployment cannot answer", {"set"}),
        (
            "Bedrock or an OpenAI account behind one small GPU machine",
            {"deploy", "test", "set", "scale", "status"},
        ),
        ("What it costs", {"spend", "set", "usage"}),
        ("Is the new model worse?", {"shadow", "deploy"}),
    ],
)
def test_every_command_of_a_section_is_taken(
    asked_head: AskedHead, section: str, verbs: set[str]
) -> None:
    for name in KNOWN:
        asked_head.run("deploy", name, "--engine", "simulated", "--model", "m")
    asked_head.admin.comparisons.told = Account(
        '{"checks": [], "outcomes": {}, "plan": []}', "## Equal", ""
    )
    commands = pasted(section)
    assert {command[0] for command in commands} == verbs
    for command in commands:
        reply = asked_head.run(*command)
        nobody_ready = command[0] == "test" and "no replica of" in reply.stderr
        assert reply.exit_code == 0 or nobody_ready, (command, reply.stderr)
