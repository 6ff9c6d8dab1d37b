"""`penstock serve` as its user lives with it: start, stop, start again, and what can go wrong."""

from __future__ import annotations

import signal
import socket
import urllib.error
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e.system import System, eventually, get_json, running

SIMULATED = ("--engine", "simulated", "--name", "sim")


@pytest.fixture
def started() -> Iterator[list[System]]:
    """Systems that a test starts by hand; whatever is left of them is ended."""
    systems: list[System] = []
    yield systems
    for system in systems:
        system.destroy()


def refused(system: System, *words: str, within: float = 120) -> None:
    """The command must end with exit code 1 and say all the words, leaving nothing behind."""
    assert system.process.wait(timeout=within) == 1, system.output()
    said = system.log.read_text()
    assert "Traceback" not in said, said
    for word in words:
        assert word in said, said
    assert not system.processes()


def test_ctrl_c_leaves_nothing_and_a_second_start_serves_what_was_left(
    tmp_path: Path, started: list[System]
) -> None:
    ladder = {"degrade": ["fallback:cloud", "reject"]}
    for replicas in (1, 2):
        system = System(tmp_path, *SIMULATED)
        started.append(system)
        said = eventually(
            lambda s=system: "curl" in (text := s.log.read_text()) and text,  # type: ignore[misc]
            within=60,
            what="the snippets",
        )
        assert system.base_url in said
        assert str(system.admin_port) in said
        system.wait_ready(replicas, within=60)
        system.change("PATCH", "deployments/sim/settings", ladder)
        system.change("POST", "deployments/sim/scale", {"replicas": 2})
        system.stop()
    assert "replicas 1 -> 2" in said
    assert 'degrade none -> ["fallback:cloud", "reject"]' in said


def test_a_second_serve_on_the_same_data_is_refused_and_one_after_it_says_that_clients_need_keys(
    tmp_path: Path, started: list[System]
) -> None:
    with running(tmp_path, *SIMULATED, within=60) as system:
        second = System(tmp_path, *SIMULATED)
        started.append(second)
        refused(second, str(system.process.pid))
        assert httpx.get(system.base_url + "/models").status_code == 200
        system.change("POST", "tenants", {"id": "acme"})
        key = system.change("POST", "tenants/acme/keys", {})["key"]
    again = System(tmp_path, *SIMULATED)
    started.append(again)
    said = eventually(
        lambda: text if "Ctrl-C" in (text := again.log.read_text()) else None,
        within=60,
        what="the snippets",
    )
    assert "Authorization: Bearer YOUR_KEY" in said
    assert "penstock keys create" in said
    with pytest.raises(urllib.error.HTTPError, match="401"):
        get_json(again.base_url + "/models")
    assert get_json(again.base_url + "/models", token=key)["data"]
    again.stop()


def test_a_taken_port_is_named(tmp_path: Path, started: list[System]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        for option in ("--gateway", "--admin"):
            system = System(tmp_path, *SIMULATED)
            system.destroy()
            port_of = "gateway_port" if option == "--gateway" else "admin_port"
            setattr(system, port_of, int(port))
            system.log.unlink(missing_ok=True)
            system.process = system.start()
            started.append(system)
            refused(system, port, option)


def test_a_model_that_is_not_there_is_one_clear_line(tmp_path: Path, started: list[System]) -> None:
    missing = tmp_path / "no-such-model"
    system = System(tmp_path, str(missing))
    started.append(system)
    refused(system, str(missing))


def test_an_unknown_engine_setting_is_named(tmp_path: Path, started: list[System]) -> None:
    system = System(tmp_path, *SIMULATED, "--engine-args", "token_per_second=5")
    started.append(system)
    refused(system, "token_per_second", "tokens_per_second")


def test_killing_serve_or_all_but_the_replica_leaves_no_orphan_and_sigterm_stops_what_comes_then(
    tmp_path: Path, started: list[System]
) -> None:
    system = System(tmp_path, *SIMULATED)
    started.append(system)
    system.wait_ready(within=60)
    system.kill(system.process.pid)
    system.process.wait(timeout=10)
    eventually(lambda: not system.processes(), within=60, what="every process gone")
    system.process = system.start()
    system.wait_ready(within=60)
    for victim in [system.process.pid, system.pid_of("head"), system.pid_of("node")]:
        system.kill(victim)
    system.process.wait(timeout=10)
    system.process = system.start()
    system.wait_ready(within=60)
    # A node that saw its parent's end before its own has told the replica to end: another follows.
    eventually(lambda: len(system.processes("penstock.replica")) == 1, within=60, what="a replica")
    assert len(system.processes("penstock-gateway")) == 1
    system.process.send_signal(signal.SIGTERM)
    assert system.process.wait(timeout=10) == 0
    assert not system.processes()
