"""vLLM imported once: when an engine is forked, and how a replica with a forked one ends."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from penstock.replica.default_model import shipped
from penstock.replica.values import CannotLoad, EngineError
from penstock.replica.vllm.start.checks import ModelPlace, find_model
from penstock.replica.vllm.start.preload import ForkedEngine, fits, preload
from tests.fakes.replica_process import ReplicaProcess
from tests.fakes.warm_pool import Claimed, Pool

_SMALL = find_model("penstock-mini")
_ON_THE_HUB = ModelPlace("org/model", None)


@pytest.mark.parametrize("args", [{}, {"max_model_len": "64"}, {"cpu_threads": "1"}])
def test_a_small_model_on_a_cpu_is_forked(args: Mapping[str, str]) -> None:
    assert fits(_SMALL, args, cpu_build=True)


@pytest.mark.parametrize(
    ("place", "args", "cpu_build"),
    [
        (_SMALL, {}, False),
        (_SMALL, {"cpu_threads": "2"}, True),
        (_SMALL, {"enforce_eager": "false"}, True),
        (_SMALL, {"no-enforce-eager": ""}, True),
        (_SMALL, {"mm-tensor-ipc": "torch_shm"}, True),
        (_ON_THE_HUB, {}, True),
    ],
)
def test_one_on_a_gpu_or_of_several_threads_or_that_may_need_more_is_left_to_vllm(
    *, place: ModelPlace, args: Mapping[str, str], cpu_build: bool
) -> None:
    assert not fits(place, args, cpu_build=cpu_build)


def test_nothing_is_imported_for_settings_or_models_that_the_start_will_refuse() -> None:
    assert preload("./no-such-model", {}, allow_model_code=False) is None
    assert preload("penstock-mini", {"port": "1"}, allow_model_code=False) is None


@pytest.fixture
def forked() -> Iterator[ForkedEngine]:
    forked = ForkedEngine(tempfile.TemporaryDirectory())
    yield forked
    forked.stop()


@pytest.mark.processes
def test_a_fork_that_was_killed_while_it_waited_is_no_fault_of_the_model(
    forked: ForkedEngine,
) -> None:
    forked.process.kill()
    forked.process.join()
    with pytest.raises(EngineError, match="killed by signal 9") as caught:
        forked.give({})
    assert not isinstance(caught.value, CannotLoad)


@pytest.mark.processes
def test_a_fork_that_is_stopped_leaves_no_files(forked: ForkedEngine) -> None:
    forked.stop()
    assert not Path(forked.files.name).exists()


@contextmanager
def _replica(
    model: Path, log: Path, *more: str, pool: Pool | None = None
) -> Iterator[subprocess.Popen[bytes] | Claimed]:
    """One that is started and imports vLLM itself, or out of a pool, whose members have."""
    words = ("--engine", "vllm", "--model", str(model), *more)
    replica = ReplicaProcess(log, *words, env={"TMPDIR": str(log.parent)}, pool=pool)
    try:
        yield replica.process
    finally:
        replica.process.kill()
        replica.close()


def _engines(replica: subprocess.Popen[bytes] | Claimed) -> list[psutil.Process]:
    """The engine's processes by their title, which one that was forked has at once."""
    return [c for c in psutil.Process(replica.pid).children(recursive=True) if _is_engine(c)]


def _is_engine(process: psutil.Process) -> bool:
    try:
        return "EngineCore" in " ".join(process.cmdline())
    except psutil.NoSuchProcess:  # it ended since it was listed
        return False


def _until(condition: Callable[[], object], what: str, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.02)


def _gone(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


@pytest.fixture
def log() -> Iterator[Path]:
    """In a folder of its own, whose name is short: vLLM's sockets lie in it, too."""
    with tempfile.TemporaryDirectory(prefix="log-") as folder:
        yield Path(folder, "replica.log")


@pytest.fixture
def model() -> Path:
    whole = shipped("penstock-mini")
    assert whole is not None
    return whole


@pytest.mark.vllm
@pytest.mark.processes
def test_a_replicas_engine_is_its_fork_and_a_signal_that_ends_it_is_told_by_name(
    model: Path, log: Path, vllm_pool: Pool
) -> None:
    with _replica(model, log, pool=vllm_pool) as replica:
        _until(lambda: '"ready": true' in log.read_text(), "that it is ready")
        (engine,) = _engines(replica)
        assert list(log.parent.glob("penstock-vllm-*")), "where other tests look for what is left"
        # Its interpreter is the replica's own: what was mapped before the fork lies where it was.
        ours, its = (_first_mapping(pid) for pid in (replica.pid, engine.pid))
        assert ours == its
        os.kill(engine.pid, signal.SIGABRT)
        assert replica.wait(20) == 70
    assert "SIGABRT" in log.read_text()


def _first_mapping(pid: int) -> str:
    """Where the kernel put the program, which differs from exec to exec."""
    return Path(f"/proc/{pid}/maps").read_text().split("-", 1)[0]


@pytest.mark.vllm
@pytest.mark.processes
def test_a_replica_told_to_stop_while_it_imports_ends_at_once(model: Path, log: Path) -> None:
    with _replica(model, log) as replica:
        _until(lambda: "importing vLLM" in log.read_text(), "that it imports")
        replica.send_signal(signal.SIGTERM)
        assert replica.wait(5) == 0
    assert not list(log.parent.glob("penstock-vllm-*"))


@pytest.mark.vllm
@pytest.mark.processes
def test_a_replica_that_fails_before_its_engine_starts_leaves_no_files(
    model: Path, log: Path, vllm_pool: Pool
) -> None:
    with _replica(model, log, "--listen", "203.0.113.1:1", pool=vllm_pool) as replica:
        assert replica.wait(60) != 0
    assert "importing vLLM" in log.read_text()
    assert not list(log.parent.glob("penstock-vllm-*"))


@pytest.mark.vllm
@pytest.mark.processes
def test_a_replica_told_to_stop_while_its_fork_waits_leaves_nothing(model: Path, log: Path) -> None:
    with _replica(model, log) as replica:
        _until(lambda: _engines(replica), "the fork")
        (engine,) = _engines(replica)
        replica.send_signal(signal.SIGTERM)
        assert replica.wait(20) == 0
        _until(lambda: _gone(engine), "that the fork is gone", 5)
    assert not list(log.parent.glob("penstock-vllm-*"))


@pytest.mark.vllm
@pytest.mark.processes
def test_what_a_forked_engine_finds_wrong_with_the_model_is_told(
    tmp_path: Path, model: Path, log: Path, vllm_pool: Pool
) -> None:
    broken = shutil.copytree(model, tmp_path / "model")
    weights = broken / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[: weights.stat().st_size // 2])
    with _replica(broken, log, pool=vllm_pool) as replica:
        assert replica.wait(60) == 72
    last = next(x for x in reversed(log.read_text().splitlines()) if "penstock-replica" in x)
    assert "SafetensorError" in last
