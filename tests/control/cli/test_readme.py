"""What the docs say to paste about deployments and shadows, a real admin API takes."""

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
from tests.fakes.control_values import node

OPERATE = Path(__file__).parents[3] / "docs" / "operate"
PENSTOCK = ".venv/bin/penstock"
KNOWN = ("penstock-mini", "chat", "cloud")  # what else the examples change

MINE = "async def route(request, engines, stats, *, share=0.5):\n    return None\n"


def pasted(page: str) -> list[list[str]]:
    """The arguments of each `penstock` in a page's shell blocks."""
    text = (OPERATE / page).read_text()
    blocks = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
    typed = [line.partition(" > ")[0] for line in lines if line.startswith(PENSTOCK)]
    return [shlex.split(line, comments=True)[1:] for line in typed]


def test_the_table_of_settings_is_what_is_declared() -> None:
    declared = table(named(*SETTINGS))
    assert declared in (OPERATE / "limits.md").read_text(), f"limits.md is to say:\n{declared}"


@pytest.mark.parametrize(
    ("page", "verbs"),
    [
        ("ladders.md", {"set"}),
        ("providers.md", {"deploy", "test", "set", "scale", "status"}),
        ("cost.md", {"spend", "set", "usage"}),
        ("shadows.md", {"shadow", "deploy"}),
        ("microserving.md", {"deploy", "set", "tokens"}),
    ],
)
def test_every_command_of_a_page_is_taken(
    asked_head: AskedHead, page: str, verbs: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(asked_head.data_dir)
    Path("mine.py").write_text(MINE)
    for name in KNOWN:
        asked_head.run("deploy", name, "--engine", "simulated", "--model", "m")
    asked_head.admin.comparisons.told = Account(
        '{"checks": [], "outcomes": {}, "plan": []}', "## Equal", ""
    )
    commands = pasted(page)
    assert {command[0] for command in commands} == verbs
    for command in commands:
        reply = asked_head.run(*command)
        nobody_ready = command[0] == "test" and "no replica of" in reply.stderr
        assert reply.exit_code == 0 or nobody_ready, (command, reply.stderr)


def test_streams_of_replicas_that_leave_are_handed_over_as_the_page_says(
    asked_head: AskedHead,
) -> None:
    cluster = asked_head.admin.cluster
    cluster.replace(cluster.view().with_node(node("local")))
    asked_head.run("deploy", "penstock-mini", "--engine", "vllm", "--model", "m")
    commands = [each for each in pasted("changing.md") if {"--hand-over", "drain"} & set(each)]
    assert [command[0] for command in commands] == ["rollout", "deploy", "scale", "drain", "drain"]
    for command in commands:
        reply = asked_head.run(*command)
        assert reply.exit_code == 0, (command, reply.stderr)
