"""Router programs, roles and MicroServing as users type them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.control.state.cluster import Gateway, GatewayReport, GatewayState
from penstock.control.state.fleet.liveness import ObservedNode
from penstock.control.state.fleet.replica import ProgramStatus, Resources
from penstock.control.state.rollout.deployment import DeploymentName
from penstock.control.state.routing.program_counts import ProgramCounts, ProgramFailure
from tests.control.cli.conftest import AskedHead
from tests.fakes.control_values import NOON, node, replica

TEXT = "async def route(request, engines, stats, *, share=0.5, to='x', deep=False):\n    pass\n"
DEPLOY = ("deploy", "chat", "--engine", "simulated", "--model", "m")


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A program's file."""
    path = tmp_path / "mine.py"
    path.write_text(TEXT)
    return str(path)


def spec_of(head: AskedHead) -> dict[str, Any]:
    """What is asked of the deployment now."""
    described = json.loads(head.run("describe", "chat", "--json").stdout)
    return dict(described["deployment"]["spec"])


def test_a_program_is_set_by_its_file_and_its_arguments_one_by_one(
    asked_head: AskedHead, file: str
) -> None:
    asked_head.run(*DEPLOY)
    words = ("selection_policy=program", f"program={file}", "program.share=0.1", "program.to=y")
    made = asked_head.run("set", "chat", *words, "program.deep=true")
    assert made.exit_code == 0, made.stderr
    program = spec_of(asked_head)["program"]
    assert (program["file"], program["args"]) == (TEXT, {"deep": True, "share": 0.1, "to": "y"})
    asked_head.run("set", "chat", "program.share=0.2")
    assert spec_of(asked_head)["program"]["args"]["share"] == 0.2
    asked_head.run("set", "chat", "program=module:mine.routes")
    assert spec_of(asked_head)["program"] == {
        **{"name": "", "file": "", "digest": "", "args": {}},
        "module": "mine.routes",
    }
    undone = asked_head.run("rollout", "undo", "chat", "--settings")
    assert undone.exit_code == 0, undone.stderr
    assert spec_of(asked_head)["program"]["file"] == TEXT
    asked_head.run("set", "chat", "selection_policy=power_of_two", "program=")
    assert spec_of(asked_head)["program"] is None


def test_deploy_keeps_the_program_and_takes_roles_with_their_replicas(
    asked_head: AskedHead, file: str
) -> None:
    asked_head.run(*DEPLOY, "--set", f"program={file}", "--set", "roles.prefill=1")
    made = asked_head.run(*DEPLOY, "--set", f"program={file}", "--set", "roles.decode=2")
    assert made.exit_code == 0, made.stderr
    told = asked_head.run(
        "deploy",
        "chat",
        "--microserving",
        "on",
        "--set",
        "program.share=1",
        "--set",
        "roles.prefill=1",
    )
    assert told.exit_code == 0, told.stderr
    assert "microserving off -> on" in told.stdout
    assert "roles.prefill 0 -> 1" in told.stdout
    assert "replicas 2 -> 3" in told.stdout
    assert TEXT not in told.stdout
    spec = spec_of(asked_head)
    assert (spec["program"]["file"], spec["program"]["args"]) == (TEXT, {"share": 1})
    scaled = asked_head.run("scale", "chat", "1")
    assert scaled.exit_code == 1
    assert "set roles.prefill and roles.decode" in scaled.stderr


def test_what_is_no_program_is_one_line(asked_head: AskedHead, file: str) -> None:
    asked_head.run(*DEPLOY)
    gone = asked_head.run("set", "chat", "program=./gone.py")
    assert "program is ./gone.py: No such file" in gone.stderr
    unknown = asked_head.run("set", "chat", f"program={file}", "program.x=1")
    assert "there are share, to, deep" in unknown.stderr
    assert unknown.exit_code == 1


def test_a_token_of_role_router_is_made_and_opens_nothing_here(
    asked_head: AskedHead, tmp_path: Path
) -> None:
    made = asked_head.run("tokens", "create", "mine", "--role", "router", "--json")
    token = tmp_path / "router.token"
    token.write_text(json.loads(made.stdout)["token"])
    token.chmod(0o600)
    refused = asked_head.run("status", "--admin-token-file", str(token))
    assert refused.exit_code == 1
    assert "for the MicroServing of replicas" in refused.stderr


def test_status_and_describe_say_where_a_program_is_asked_and_why_not(
    asked_head: AskedHead, file: str
) -> None:
    asked_head.run(*DEPLOY, "--set", f"program={file}", "--set", "selection_policy=program")
    failed = (ProgramFailure("raised", 2, "KeyError: 'a'"),)
    away = ProgramCounts("d", "three failures in a row", asked=9, decided=7, failures=failed)
    report = GatewayReport(NOON, 1, programs={"chat": away})
    gateway = Gateway("gw", GatewayState.READY, report=report, reporting=True)
    cluster = asked_head.admin.cluster
    view = cluster.view().with_gateway(gateway)
    known = view.deployments[DeploymentName("chat")]
    one = replica(uid=known.uid, digest=known.template_digest, deployment="chat")
    served = replace(one, role="decode", status=replace(one.status, microserving_rest="h:7"))
    cluster.replace(view.with_replica(served))
    said = ProgramStatus(known.uid, "d", running=False, restarts=3, last_error="killed")
    cluster.liveness.nodes[node().id] = ObservedNode(NOON, Resources(), programs=(said,))
    for verb in (("status",), ("describe", "chat")):
        told = asked_head.run(*verb)
        assert told.exit_code == 0, told.stderr
        lines = told.stdout
        assert re.search(r"chat +not asked +the file [0-9a-f]{12} +gw +9 +7 +2 +0", lines), lines
        assert "chat: gateway gw does not ask: three failures in a row" in lines
        assert "chat: gateway gw: 2 raised: KeyError: 'a'" in lines
        assert "chat: on node n1 it does not run, 3 restarts: killed" in lines
        assert "r1: MicroServing by REST at h:7" in lines
    assert TEXT.splitlines()[0] in asked_head.run("describe", "chat").stdout
    asked_head.run("set", "chat", "selection_policy=power_of_two")
    assert "Programs" not in asked_head.run("status").stdout
