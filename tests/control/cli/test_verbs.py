"""Verbs that ask the head, against a real admin API."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.control.secrets_files import write_secret
from penstock.control.state.cluster import ClusterView
from penstock.control.state.routing.suspects import EngineDeath, Suspect, merged
from tests.control.cli.conftest import AskedHead
from tests.fakes.control_values import node

DEPLOY = ("deploy", "mini", "--model", "penstock-mini", "--engine", "simulated")


def test_deploy_scale_and_delete_change_what_is_served(asked_head: AskedHead) -> None:
    deployed = asked_head.run(*DEPLOY, "--replicas", "2", "--engine-arg", "ttft_ms=5")
    assert deployed.exit_code == 0, deployed.stderr
    assert deployed.stdout.startswith("mini is starting, 0 of 2 replicas ready (generation 1)")
    scaled = asked_head.run("scale", "mini", "3", "--json")
    spec = json.loads(scaled.stdout)["spec"]
    assert (spec["replicas"], spec["engine_args"]) == (3, {"ttft_ms": "5"})
    refused = asked_head.run("delete", "mini", input="y\n")
    assert refused.exit_code == 1
    assert "mini, with 0 replicas that serve, is deleted: where there is no" in refused.stderr
    assert "say --yes" in refused.stderr
    deleted = asked_head.run("delete", "mini", "--yes")
    assert deleted.stdout == "mini is deleted\n"
    assert not asked_head.admin.cluster.view().deployments


@pytest.mark.parametrize(("answer", "left"), [("y", False), ("n", True), ("", True)])
def test_delete_asks_at_a_terminal(asked_head: AskedHead, answer: str, left: bool) -> None:
    asked_head.run(*DEPLOY)
    ours, theirs = pty.openpty()
    at = ["--admin", asked_head.address, "--data-dir", str(asked_head.data_dir)]
    command = [sys.executable, "-m", "penstock.control.main", "delete", "mini", *at]
    with subprocess.Popen(command, stdin=theirs, stdout=subprocess.PIPE) as asked:
        os.write(ours, f"{answer}\n".encode())
        said = asked.stdout.read().decode() if asked.stdout else ""
    os.close(ours)
    os.close(theirs)
    assert "mini, with 0 replicas that serve, is deleted. Go on? [y/N]:" in said
    assert ("mini" in asked_head.admin.cluster.view().deployments) is left


def test_settings_are_given_at_first_and_changed_one_by_one(asked_head: AskedHead) -> None:
    given = ("--set", "max_queued=7", "--set", "canary=next:50,b:9", "--set", "kv-pressure=0")
    assert asked_head.run(*DEPLOY, *given).exit_code == 0
    changed = asked_head.run("set", "mini", "selection_policy=session", "canary=", "--json")
    assert changed.exit_code == 0, changed.stderr
    spec = json.loads(changed.stdout)["spec"]
    assert (spec["max_queued"], spec["kv_pressure"], spec["canary"]) == (7, 0, [])
    assert spec["selection_policy"] == "session"


def test_a_fallback_or_canary_that_is_not_there_is_told_of(asked_head: AskedHead) -> None:
    assert asked_head.run(*DEPLOY).stderr == ""
    asked_head.run("deploy", "next", "--model", "penstock-mini", "--engine", "simulated")
    laddered = asked_head.run("set", "mini", "degrade=fallback:nobody,fallback:next", "--json")
    assert laddered.exit_code == 0
    assert json.loads(laddered.stdout)["name"] == "mini"
    assert laddered.stderr == (
        "note: there is no deployment nobody: mini passes it over until there is\n"
    )
    shared = asked_head.run("set", "mini", "canary=later:50,next:9")
    assert shared.stderr.splitlines() == [
        "note: there is no deployment later: mini passes it over until there is"
    ]
    assert asked_head.run("set", "mini", "max_queued=9").stderr == ""


def test_deploy_changes_what_it_names_and_says_what_that_is(asked_head: AskedHead) -> None:
    given = ("--replicas", "8", "--set", "degrade=reject", "--engine-arg", "ttft_ms=5")
    asked_head.run(*DEPLOY, *given)
    changed = asked_head.run(
        "deploy", "mini", "--model", "other", "--engine-arg", "answer_tokens=9"
    )
    assert changed.stdout.splitlines()[:-1] == [
        "mini: model penstock-mini -> other",
        "mini: engine_args.answer_tokens none -> 9",
    ]
    replaced = asked_head.run("deploy", "mini", "--model", "other", "--replace", "--json")
    assert 'mini: degrade ["reject"] -> none' in replaced.stderr
    spec = json.loads(replaced.stdout)["spec"]
    assert (spec["replicas"], spec["engine"], spec["engine_args"]) == (1, "vllm", {})


def test_a_text_needs_no_model(asked_head: AskedHead) -> None:
    reply = asked_head.run("deploy", "sorry", "--engine", "canned", "--engine-arg", "text=Later.")
    assert reply.exit_code == 0, reply.stderr


def test_a_deployment_can_come_from_a_file_that_the_api_gave(asked_head: AskedHead) -> None:
    told = asked_head.run(*DEPLOY, "--max-adapters", "3", "--json").stdout
    again = asked_head.run("deploy", "copy", "-f", "-", "--replicas", "0", "--json", input=told)
    assert again.exit_code == 0, again.stderr
    spec = json.loads(again.stdout)["spec"]
    assert spec["max_adapters"] == 3
    assert spec["replicas"] == 0


def test_a_new_deployment_does_not_overwrite(asked_head: AskedHead) -> None:
    assert asked_head.run(*DEPLOY, "--new").exit_code == 0
    reply = asked_head.run(*DEPLOY, "--new", "--replicas", "9")
    assert reply.exit_code == 1
    assert "'mini' exists" in reply.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("deploy", "mini"), "--model"),
        (("deploy", "Not A Name", "--model", "m"), "name is 'Not A Name'"),
        (("deploy", "mini", "--model", "m", "--engine", "magic"), "engine is 'magic'"),
        (("deploy", "mini", "--model", "m", "--engine-arg", "oops"), "key=value"),
        (("deploy", "mini", "-f", "nothing.json"), "nothing.json"),
        (("deploy", "mini", "--model", "m", "--set", "max_queued"), "key=value"),
        (("set", "none", "max_queued=1"), "no deployment 'none'"),
        (("set", "mini", "max_queue=1"), "max_queue"),
        (("set", "mini", "max_n=many"), "max_n"),
        (("set", "mini", "canary=next"), "NAME:PERMILLE"),
        (("scale", "none", "1"), "no deployment 'none'"),
        (("delete", "../nodes"), "nothing is named '../nodes'"),
        (("tokens", "create", "a b"), "name is 'a b'"),
        (("tokens", "revoke", "nobody"), "'nobody'"),
    ],
)
def test_what_goes_wrong_is_one_line(
    asked_head: AskedHead, arguments: tuple[str, ...], words: str
) -> None:
    reply = asked_head.run(*arguments)
    assert reply.exit_code == 1
    (line,) = reply.stderr.splitlines()
    assert line.startswith(f"penstock {arguments[0]}")
    assert ": error: " in line
    assert words in line


def test_a_file_that_is_not_json_is_named(asked_head: AskedHead, tmp_path: Path) -> None:
    for content in ("{", "[]", '{"spec": 1}'):
        (tmp_path / "bad.json").write_text(content)
        reply = asked_head.run("deploy", "mini", "-f", str(tmp_path / "bad.json"))
        assert reply.exit_code == 1
        assert "bad.json" in reply.stderr


def test_tokens_are_created_listed_and_revoked(asked_head: AskedHead, tmp_path: Path) -> None:
    created = asked_head.run("tokens", "create", "alice", "--role", "operator")
    secret = created.stdout.splitlines()[-1]
    write_secret(tmp_path / "alice", secret)
    as_alice = ("--admin-token-file", str(tmp_path / "alice"))
    assert asked_head.run(*DEPLOY, *as_alice).exit_code == 0
    refused = asked_head.run("tokens", "list", *as_alice)
    assert "has role operator, this needs role admin" in refused.stderr
    assert "alice" in asked_head.run("tokens", "list").stdout
    listed = json.loads(asked_head.run("tokens", "list", "--json").stdout)
    assert {token["name"]: token["role"] for token in listed} == {
        "admin": "admin",
        "alice": "operator",
    }
    assert asked_head.run("tokens", "revoke", "alice").exit_code == 0
    assert "revoked" in asked_head.run("scale", "mini", "1", *as_alice).stderr


def test_without_a_token_a_verb_says_where_it_looked(asked_head: AskedHead) -> None:
    (asked_head.data_dir / "admin.token").unlink()
    reply = asked_head.run("status")
    assert reply.exit_code == 1
    assert f"no admin token in {asked_head.data_dir / 'admin.token'}" in reply.stderr
    assert "--admin-token-file" in reply.stderr


def test_a_token_file_that_others_can_read_is_refused(asked_head: AskedHead) -> None:
    (asked_head.data_dir / "admin.token").chmod(0o644)
    assert "chmod 600" in asked_head.run("status").stderr


def test_a_node_is_drained_and_used_again(asked_head: AskedHead) -> None:
    know(asked_head, lambda view: view.with_node(node("n1")))
    assert asked_head.run("drain", "n1").stdout.startswith("n1 gets no replicas")
    assert json.loads(asked_head.run("drain", "n1", "--json").stdout)["draining"] is True
    assert asked_head.run("drain", "n1", "--undo").stdout == "n1 may have replicas again\n"
    hurried = json.loads(asked_head.run("drain", "n1", "--hand-over", "--json").stdout)
    assert (hurried["draining"], hurried["hand_over"]) == (True, True)
    assert "leave --hand-over out" in asked_head.run("drain", "n1", "--undo", "--hand-over").stderr
    assert "'n2'" in asked_head.run("drain", "n2").stderr


def test_a_quarantined_request_is_released_by_its_first_digits(asked_head: AskedHead) -> None:
    deaths = (EngineDeath("r1", 1_000, "gw-1"), EngineDeath("r2", 90_000, "gw-1"))
    one = Suspect(bytes(range(32)), "mini", "u1", "/v1/completions", deaths, 2**42)
    know(asked_head, lambda view: replace(view, suspects=merged(view.suspects, [one])))
    listed = asked_head.run("quarantine", "list").stdout
    assert "000102030405" in listed
    assert "quarantined" in listed
    assert "no fingerprint begins" in asked_head.run("quarantine", "release", "ff").stderr
    released = asked_head.run("quarantine", "release", "000102", "--json")
    assert json.loads(released.stdout) == {"released": bytes(range(32)).hex()}
    assert json.loads(asked_head.run("quarantine", "list", "--json").stdout) == []


def test_a_head_without_a_gateway_replaces_none(asked_head: AskedHead) -> None:
    assert "'gw-1'" in asked_head.run("replace", "gw-1").stderr


def know(head: AskedHead, step: Callable[[ClusterView], ClusterView]) -> None:
    """Lets the head see something, before anybody asks it."""
    cluster = head.admin.cluster
    cluster.replace(step(cluster.view()))


def test_a_provider_is_deployed_with_ladders_and_budgets_as_users_type_them(
    asked_head: AskedHead,
) -> None:
    words = "--engine openai --model gpt --engine-arg api_key_env=OPENAI_KEY --set context=trim"
    given = [*words.split(), "--set", "budget_usd_per_day=2.5"]
    made = asked_head.run("deploy", "cloud", *given, "--set", "degrade=fallback:b,reject", "--json")
    assert made.exit_code == 0, made.stderr
    spec = json.loads(made.stdout)["spec"]
    assert (spec["degrade"], spec["context"]) == (["fallback:b", "reject"], "trim")
    assert (spec["engine"], spec["budget_usd_per_day"]) == ("openai", 2.5)
    by_reason = '{"budget": ["fallback:b"], "default": ["trim"]}'
    for text, degrade in ((by_reason, json.loads(by_reason)), ('["trim"]', ["trim"]), ("", [])):
        changed = asked_head.run("set", "cloud", f"degrade={text}", "--json")
        assert json.loads(changed.stdout)["spec"]["degrade"] == degrade
    wrong = asked_head.run("set", "cloud", "degrade={budget}")
    assert wrong.exit_code == 1
    assert "degrade is '{budget}', which is not JSON" in wrong.stderr
