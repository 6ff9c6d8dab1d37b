"""No process of an engine outlives its replica, however the replica ends."""

from __future__ import annotations

import multiprocessing
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psutil
import pytest

from penstock.replica.default_model import shipped
from penstock.replica.vllm.start import engine_process

pytestmark = [pytest.mark.vllm, pytest.mark.processes]

_REPLICA = """
import asyncio, json, sys
from penstock.replica.calls.answers import events_of
from penstock.replica.values import Call
from penstock.replica.vllm.engine import VllmEngine
from penstock.replica.vllm.start.preload import preload

async def main(forked):
    engine = VllmEngine(sys.argv[1], "m", (), {}, forked=forked)
    await engine.start()
    body = {"prompt": "x", "max_tokens": 3000, "ignore_eos": True, "stream": True}
    call = Call("r", "/v1/completions", json.dumps(body).encode(), "m")
    async for event in events_of(engine.answer, call):
        print("event", flush=True)

model, how = sys.argv[1:]
asyncio.run(main(preload(model, {}, allow_model_code=False) if how == "forked" else None))
"""

either_way = pytest.mark.parametrize("how", ["forked", "spawned"])


@contextmanager
def _replica(how: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", _REPLICA, str(shipped("penstock-mini")), how]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def _engine_processes(replica: subprocess.Popen[str]) -> list[psutil.Process]:
    """The engine among the replica's children, others of which come and go while it loads."""
    return [c for c in psutil.Process(replica.pid).children(recursive=True) if _is_engine(c)]


def _is_engine(process: psutil.Process) -> bool:
    try:
        line = " ".join(process.cmdline())
    except psutil.NoSuchProcess:  # it ended since it was listed
        return False
    return "multiprocessing.spawn" in line or "EngineCore" in line


def _gone(process: psutil.Process) -> bool:
    try:
        status: str = process.status()
    except psutil.NoSuchProcess:
        return True
    return status == psutil.STATUS_ZOMBIE


def _wait(condition: Callable[[], bool], what: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.02)


@either_way
def test_a_replica_killed_while_it_streams_takes_its_engine_along(how: str) -> None:
    with _replica(how) as replica:
        assert replica.stdout is not None
        assert replica.stdout.readline() == "event\n"
        engine = _engine_processes(replica)
        assert engine
        replica.kill()
        _wait(lambda: all(map(_gone, engine)), "the engine is gone", 5)


@either_way
def test_a_replica_killed_while_it_loads_takes_its_engine_along(how: str) -> None:
    with _replica(how) as replica:
        _wait(lambda: bool(_engine_processes(replica)), "an engine process", 60)
        engine = _engine_processes(replica)
        replica.kill()
        _wait(lambda: all(map(_gone, engine)), "the engine is gone", 5)


def test_an_engine_process_whose_parent_ended_before_it_could_ask_ends_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(engine_process.PARENT, "1")
    engine = multiprocessing.get_context("spawn").Process(target=engine_process.run_engine_core)
    engine.start()
    engine.join(30)
    assert engine.exitcode == -signal.SIGKILL
