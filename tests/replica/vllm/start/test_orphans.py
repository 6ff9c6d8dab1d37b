"""No process of an engine outlives its replica, however the replica ends."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import psutil
import pytest

from penstock.replica.calls.answers import events_of
from penstock.replica.default_model import shipped
from penstock.replica.values import Call
from penstock.replica.vllm.engine import VllmEngine
from penstock.replica.vllm.start import engine_process
from tests.fakes.engine_nursery import forked
from tests.fakes.replica_agent import replica_agent
from tests.fakes.replica_process import (
    ReplicaProcess,
    chat_request,
    inference_stub,
    running_replica,
)
from tests.fakes.warm_pool import Claimed, Pool

pytestmark = [pytest.mark.vllm, pytest.mark.processes]

_Started = subprocess.Popen[bytes] | Claimed | BaseProcess
_WORDS = ("--engine", "vllm", "--model", "penstock-mini", "--engine-arg", "cpu_kvcache_gib=0.25")


async def _streams(events: Connection) -> None:
    """A replica whose engine vLLM spawns; it says so when it streams."""
    engine = VllmEngine(str(shipped("penstock-mini")), "m", (), {})
    await engine.start()
    body = {"prompt": "x", "max_tokens": 3000, "ignore_eos": True, "stream": True}
    call = Call("r", "/v1/completions", json.dumps(body).encode(), "m")
    async for _ in events_of(engine.answer, call):
        events.send("event")


def _replica(events: Connection) -> None:
    asyncio.run(_streams(events))


@contextmanager
def _spawning() -> Iterator[tuple[BaseProcess, Connection]]:
    """Its process, which has imported vLLM, and what it says."""
    hears, says = multiprocessing.Pipe(duplex=False)
    process = forked(_replica, says)
    says.close()
    try:
        yield process, hears
    finally:
        process.kill()
        process.join()


def _engine_processes(replica: _Started) -> list[psutil.Process]:
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


def test_a_replica_killed_while_it_streams_takes_the_engine_along_that_it_forked(
    vllm_pool: Pool, tmp_path: Path
) -> None:
    with (
        replica_agent() as agent,
        running_replica(tmp_path / "log", *_WORDS, within=60, agent=agent, pool=vllm_pool) as it,
        inference_stub(it.address) as stub,
    ):
        answer = stub.Call(chat_request("x", max_tokens=3000, ignore_eos=True, stream=True))
        next(answer)
        _takes_along(it.process, _engine_processes(it.process))
        answer.cancel()


def test_a_replica_killed_while_it_loads_takes_the_engine_along_that_it_forked(
    vllm_pool: Pool, tmp_path: Path
) -> None:
    replica = ReplicaProcess(tmp_path / "log", *_WORDS, pool=vllm_pool)
    try:
        _wait(lambda: bool(_engine_processes(replica.process)), "an engine process", 60)
        _takes_along(replica.process, _engine_processes(replica.process))
    finally:
        replica.close()


@pytest.mark.long
def test_a_replica_killed_while_it_streams_takes_the_engine_along_that_it_spawned() -> None:
    with _spawning() as (replica, says):
        assert says.recv() == "event"
        _takes_along(replica, _engine_processes(replica))


def test_a_replica_killed_while_it_loads_takes_the_engine_along_that_it_spawned() -> None:
    with _spawning() as (replica, _):
        _wait(lambda: bool(_engine_processes(replica)), "an engine process", 60)
        _takes_along(replica, _engine_processes(replica))


def _takes_along(replica: _Started, engine: list[psutil.Process]) -> None:
    assert engine
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
