"""`penstock serve` as real processes, with the simulated engine."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from penstock.control.serving import panel
from penstock.control.serving.options import ServeOptions
from tests.e2e.system import System, eventually, get_json

pytestmark = pytest.mark.processes

SIMULATED = ("--engine", "simulated", "--engine-args", "ttft_ms=0 tokens_per_second=0")
READY = "Ctrl-C stops everything"
PENSTOCK = str(Path(sys.executable).with_name("penstock"))


def wait_ready(system: System) -> System:
    def ready() -> bool:
        assert system.process.poll() is None, system.output()
        return READY in system.log.read_text()

    eventually(ready, within=60, what="the ready text")
    return system


def replicas(system: System) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = system.admin("replicas")
    return [each for each in listed if each["state"] == "ready"]


def options_of(system: System) -> ServeOptions:
    gateway, admin = f"127.0.0.1:{system.gateway_port}", f"127.0.0.1:{system.admin_port}"
    return ServeOptions("penstock-mini", "penstock-mini", system.data, gateway=gateway, admin=admin)


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """One system that is ready; tests hurt it, and it must heal."""
    system = System(tmp_path_factory.mktemp("serve"), *SIMULATED)
    try:
        yield wait_ready(system)
        system.stop()
    finally:
        system.destroy()


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[System]:
    """A system that has just been started."""
    system = System(tmp_path, *SIMULATED)
    yield system
    system.destroy()


def test_the_curl_snippet_works_when_pasted(system: System) -> None:
    snippet = panel.curl(options_of(system))
    assert snippet in system.log.read_text()
    reply = subprocess.run(["bash", "-c", snippet], capture_output=True, text=True, check=True)
    assert reply.stdout.rstrip().endswith("data: [DONE]")


def test_the_python_snippet_works_when_pasted(system: System) -> None:
    snippet = panel.python(options_of(system))
    assert snippet in system.log.read_text()
    reply = subprocess.run(
        [sys.executable, "-c", snippet], capture_output=True, text=True, check=True
    )
    assert reply.stdout.strip()


def test_the_admin_snippet_works_when_pasted(system: System) -> None:
    snippet = panel.admin_curl(options_of(system))
    assert snippet in system.log.read_text()
    reply = subprocess.run(["bash", "-c", snippet], capture_output=True, text=True, check=True)
    assert [each["name"] for each in json.loads(reply.stdout)] == ["penstock-mini"]


def test_no_token_is_in_a_command_line_or_a_log(system: System) -> None:
    secrets = [path.read_text().strip() for path in system.data.glob("*.token")]
    assert secrets
    said = system.output() + str([process.cmdline() for process in system.processes()])
    assert not [secret for secret in secrets if secret in said]


def test_adapters_are_listed_beside_their_deployment(system: System) -> None:
    listed = {model["id"] for model in get_json(system.base_url + "/models")["data"]}
    adapters = ("pirate", "json", "pirate@1", "json@1")
    assert listed == {"penstock-mini", *(f"penstock-mini:{adapter}" for adapter in adapters)}


def test_status_tells_programs_everything(system: System) -> None:
    admin = f"127.0.0.1:{system.admin_port}"
    reply = subprocess.run(
        [PENSTOCK, "status", "--json", "--admin", admin, "--data-dir", str(system.data)],
        capture_output=True,
        check=True,
    )
    told = json.loads(reply.stdout)
    assert [each["name"] for each in told["deployments"]] == ["penstock-mini"]
    assert [each["state"] for each in told["replicas"]] == ["ready"]
    assert [each["state"] for each in told["nodes"]] == ["ready"]
    assert told["gateways"][0]["address"] == f"127.0.0.1:{system.gateway_port}"


def test_status_shows_people_tables(system: System) -> None:
    reply = subprocess.run(
        [PENSTOCK, "status"],
        env={
            **os.environ,
            "PENSTOCK_ADMIN": f"127.0.0.1:{system.admin_port}",
            "PENSTOCK_ADMIN_TOKEN_FILE": str(system.data / "admin.token"),
            "COLUMNS": "160",
        },
        capture_output=True,
        text=True,
        check=True,
    )
    for words in ("Deployments", "Replicas", "Nodes", "Gateways", "penstock-mini", "1/1", "gw-1"):
        assert words in reply.stdout


def test_a_killed_replica_comes_back_and_the_terminal_tells_of_it(system: System) -> None:
    before = replicas(system)[0]
    os.kill(before["pid"], signal.SIGKILL)

    def back() -> bool:
        return any(each["pid"] != before["pid"] for each in replicas(system))

    eventually(back, within=60, what="another process of the replica")
    line = re.compile(rf"replica {before['id']} ended \(was killed by SIGKILL.*\): starts again")
    eventually(lambda: line.search(system.log.read_text()), within=60, what="a line that tells")


def test_a_killed_head_is_started_again_and_the_gateway_goes_on(system: System) -> None:
    gateway, head = _gateway_pid(system), system.pid_of("head")
    system.kill(head)
    assert get_json(system.base_url + "/models")["data"]
    eventually(lambda: _pid(system, "head", not_=head), within=60, what="another head")
    eventually(lambda: replicas(system), within=60, what="the replica in the new head's view")
    assert _gateway_pid(system) == gateway


def test_a_killed_agent_is_started_again_and_adopts_its_replica(system: System) -> None:
    before = replicas(system)[0]["pid"]
    agent = system.pid_of("node")
    system.kill(agent)
    new = eventually(lambda: _pid(system, "node", not_=agent), within=60, what="another agent")

    def registered() -> bool:
        return bool(system.admin("nodes")[0]["pid"] == new)

    eventually(registered, within=60, what="the new agent in the head's view")
    assert [each["pid"] for each in replicas(system)] == [before]
    os.kill(before, signal.SIGKILL)  # an orphan of the first agent: serve itself must bury it
    eventually(lambda: not psutil.pid_exists(before), within=60, what="no zombie")
    eventually(lambda: replicas(system), within=60, what="its successor")


def test_ctrl_c_before_it_is_ready_leaves_nothing(fresh: System) -> None:
    eventually(lambda: fresh.processes(" head "), within=60, what="the head")
    fresh.process.send_signal(signal.SIGINT)
    assert fresh.process.wait(timeout=10) == 0
    assert not fresh.processes()


def test_a_background_job_of_a_script_is_stopped_by_sigint_too(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a shell starts its jobs
    try:
        system = System(tmp_path, *SIMULATED)
    finally:
        signal.signal(signal.SIGINT, before)
    try:
        wait_ready(system)
        system.stop()
    finally:
        system.destroy()


def test_a_second_ctrl_c_ends_everything_at_once(tmp_path: Path) -> None:
    settings = "ttft_ms=0 tokens_per_second=1 answer_tokens=1000"
    system = System(tmp_path, "--engine", "simulated", "--engine-args", settings)
    try:
        wait_ready(system)
        body = {"model": "penstock-mini", "stream": True, "messages": []}
        body["messages"] = [{"role": "user", "content": "a long story"}]
        with subprocess.Popen(
            ["curl", "-sN", system.base_url + "/chat/completions", "-d", json.dumps(body)],
            stdout=subprocess.PIPE,
        ) as client:
            assert client.stdout is not None
            client.stdout.readline()  # from now on there is something to drain
            system.process.send_signal(signal.SIGINT)
            eventually(lambda: "stopping" in system.log.read_text(), within=60, what="the stop")
            system.process.send_signal(signal.SIGINT)
            assert (
                system.process.wait(timeout=15) == 130
            )  # well before a drain of 30 s would be over
            assert not system.processes()
    finally:
        system.destroy()


def test_another_model_takes_the_place_of_the_last_one(fresh: System) -> None:
    wait_ready(fresh)
    fresh.stop()
    fresh.options = (*SIMULATED, "--name", "other")
    fresh.log.unlink()
    fresh.process = fresh.start()
    wait_ready(fresh)
    listed = {model["id"] for model in get_json(fresh.base_url + "/models")["data"]}
    assert "other" in listed
    assert "penstock-mini" not in listed
    fresh.stop()


def test_a_changed_setting_starts_nothing_of_the_last_run(fresh: System) -> None:
    wait_ready(fresh)
    fresh.stop()
    fresh.options = ("--engine", "simulated", "--engine-args", "ttft_ms=1")
    fresh.log.unlink()
    fresh.process = fresh.start()
    wait_ready(fresh)
    node_log = (fresh.data / "logs" / "node-agent.log").read_text()
    assert node_log.count("started cold as process") == 1
    fresh.stop()


def test_too_little_memory_is_one_line(tmp_path: Path) -> None:
    reply = subprocess.run(
        [PENSTOCK, "serve", "--replicas", "1000", "--data-dir", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert reply.returncode == 1
    assert reply.stderr.startswith("penstock serve: error: too little memory")
    assert len(reply.stderr.splitlines()) == 1


def test_a_gateway_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    system = System(tmp_path, *SIMULATED, "--gateway-binary", str(tmp_path / "nothing"))
    try:
        assert system.process.wait(timeout=30) == 1
        assert f"{tmp_path / 'nothing'}" in system.log.read_text()
        assert not system.processes()
    finally:
        system.destroy()


def _gateway_pid(system: System) -> int:
    return int(system.admin("gateways")[0]["pid"])


def _pid(system: System, role: str, *, not_: int) -> int:
    found = [each.pid for each in system.processes(f"penstock.control.main {role} ")]
    return next((pid for pid in found if pid != not_), 0)
