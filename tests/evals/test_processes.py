from __future__ import annotations

import signal
import sys
from pathlib import Path

import psutil
import pytest

from penstock.evals.errors import EvalError
from penstock.evals.processes import free_ports, running

STUBBORN = (
    "import signal, subprocess, sys\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
    "print(child.pid, flush=True)\n"
    "child.wait()\n"
)


def python(script: str) -> list[str]:
    return [sys.executable, "-c", script]


def test_a_process_lives_as_long_as_its_block(tmp_path: Path) -> None:
    sleep = python("import time; time.sleep(60)")
    with running("sleeper", sleep, tmp_path, stop=signal.SIGTERM) as child:
        assert child.process.poll() is None
    assert child.process.returncode == -signal.SIGTERM


def test_what_does_not_end_is_killed_with_its_children(tmp_path: Path) -> None:
    command = python(STUBBORN)
    with running("stubborn", command, tmp_path, stop=signal.SIGTERM, patience=0.2) as child:
        pid = int(child.wait_for(child.log.read_text, within=20, what="its child's pid"))
        assert psutil.pid_exists(pid)
    assert child.process.returncode == -signal.SIGKILL
    psutil.wait_procs([p for p in [_process(pid)] if p], timeout=10)
    assert _process(pid) is None


def _process(pid: int) -> psutil.Process | None:
    try:
        found = psutil.Process(pid)
    except psutil.NoSuchProcess:
        return None
    return None if found.status() == psutil.STATUS_ZOMBIE else found


def test_a_process_that_ends_early_is_told_with_its_last_words(tmp_path: Path) -> None:
    command = python("raise SystemExit('port 80 is taken')")
    with (
        running("server", command, tmp_path, stop=signal.SIGTERM) as child,
        pytest.raises(EvalError, match="server ended with 1: port 80 is taken"),
    ):
        child.wait_for(lambda: None, within=20, what="an answer")


def test_waiting_has_an_end(tmp_path: Path) -> None:
    command = python("import time; time.sleep(60)")
    with (
        running("sleeper", command, tmp_path, stop=signal.SIGTERM) as child,
        pytest.raises(EvalError, match=r"sleeper: not within 0.05 s: an answer"),
    ):
        child.wait_for(lambda: None, within=0.05, what="an answer")


def test_a_missing_program_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(EvalError, match=r"cannot start server: .*no-such-program"),
        running("server", ["no-such-program"], tmp_path, stop=signal.SIGTERM),
    ):
        pytest.fail("it started")


def test_free_ports_differ() -> None:
    assert len(set(free_ports(5))) == 5
