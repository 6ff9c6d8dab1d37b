"""What docs/operate/canaries.md says to paste, a real admin API takes."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace

from penstock.control.state.canary.canary import CanaryState, ended
from penstock.control.state.cluster import ClusterView
from penstock.control.state.rollout.revision import served
from tests.control.cli.conftest import AskedHead
from tests.control.cli.test_readme import OPERATE, pasted

MINI = ("--model", "penstock-mini", "--max-adapters", "4")
VERBS = {"deploy", "canary", "rollout", "adapters", "set"}


def test_every_command_of_the_page_is_taken(asked_head: AskedHead) -> None:
    asked_head.run("deploy", "penstock-mini", *MINI)
    for words in (
        ("adapters", "add", "pirate@1", "penstock-mini/pirate", "--base", "penstock-mini"),
        ("alias", "set", "penstock-mini:pirate", "pirate@1"),
    ):
        assert asked_head.run(*words).exit_code == 0
    commands = pasted("canaries.md")
    assert {command[0] for command in commands} == VERBS
    for command in commands:
        asyncio.run(asked_head.admin.cluster.observe(settled, "test"))
        reply = asked_head.run(*command)
        assert reply.exit_code == 0, (command, reply.stderr)


def test_the_document_of_the_page_is_taken(asked_head: AskedHead) -> None:
    for name in ("chat", "chat-next"):
        asked_head.run("deploy", name, *MINI)
    (text,) = re.findall(r"```yaml\n(.*?)```", (OPERATE / "canaries.md").read_text(), re.DOTALL)
    reply = asked_head.run("apply", "-f", "-", input=text)
    assert reply.stdout.startswith("canary next created"), reply.stderr


def settled(view: ClusterView) -> ClusterView:
    """Once what was rolled out serves, and what was promoted has its target's place."""
    for deployment in view.deployments.values():
        serves = replace(deployment, revisions=served(deployment.revisions))
        view = view.with_deployment(serves)
    for canary in view.canaries.named.values():
        if canary.promoting:
            over = ended(canary, CanaryState.PROMOTED, "it serves", canary.created_at)
            view = replace(view, canaries=view.canaries.having(over))
    return view
