"""Causes read from an engine's log, and the hashes that tell engines apart."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.replica.vllm.start import causes, engine_process, facts


def _record(exc_info: str) -> str:
    return json.dumps({"message": "failed", "exc_info": exc_info}) + "\n"


_TRACE = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\n'


def test_the_cause_is_the_last_exception_that_is_not_about_another(tmp_path: Path) -> None:
    file = tmp_path / "causes.jsonl"
    file.write_text(
        _record(_TRACE + "ValueError: weights are\nbroken")
        + _record(_TRACE + "RuntimeError: init failed. See root cause above.")
        + "no json\n"
        + json.dumps({"message": "no exception"})
        + "\n"
    )
    assert causes.logged_cause(file) == "ValueError: weights are broken"
    assert causes.logged_cause(tmp_path / "none") == ""


_FAILING = """
import json, logging.config, sys
for file in sys.argv[1:]:
    logging.config.dictConfig(json.load(open(file)))
    log = logging.getLogger("vllm.x")
    log.warning("just so")
    try: 1/0
    except Exception: log.exception("failed " * 40000)
    logging.getLogger("library").critical("of a library")
"""


def _log_failures(*configs: Path) -> str:
    command = [sys.executable, "-c", _FAILING, *map(str, configs)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stderr


def test_only_the_engines_process_writes_where_causes_are_looked_for(tmp_path: Path) -> None:
    found = causes.Causes(tmp_path)
    here, engine = found.log_configs("WARNING")
    _log_failures(here)
    assert not found.errors.exists()
    said = _log_failures(engine)
    assert causes.logged_cause(found.errors) == "ZeroDivisionError: division by zero"
    first, second, third = (json.loads(line) for line in said.splitlines())
    assert (first["level"], first["logger"], second["level"]) == ("warning", "vllm.x", "error")
    assert (third["level"], third["logger"]) == ("error", "library")


def test_what_the_engines_process_writes_is_bounded(tmp_path: Path) -> None:
    found = causes.Causes(tmp_path)
    _, engine = found.log_configs("WARNING")
    _log_failures(*[engine] * 12)  # 280 KB each
    assert sum(file.stat().st_size for file in tmp_path.glob("errors.jsonl*")) < 3 << 20
    assert causes.logged_cause(found.errors) == "ZeroDivisionError: division by zero"


def test_the_cause_of_a_death_is_looked_for_once_however_many_streams_ask(tmp_path: Path) -> None:
    found = causes.Causes(tmp_path)
    asked = 0

    def exit_codes() -> list[int | None]:
        nonlocal asked
        asked += 1
        return [1]

    found.errors.write_text(_record(_TRACE + "ValueError: first"))
    told = {str(found.death(exit_codes))}
    found.errors.write_text(_record(_TRACE + "ValueError: another"))
    told |= {str(found.death(exit_codes)) for _ in range(255)}
    assert told == {"ValueError: first"}
    assert asked == 1


def test_a_cause_that_is_not_known_yet_is_looked_for_again(tmp_path: Path) -> None:
    found = causes.Causes(tmp_path)
    assert str(found.death(lambda: [None])) == "its process ended"
    assert "signal 9" in str(found.death(lambda: [-9]))


@pytest.mark.parametrize(
    ("codes", "logged", "killed"),
    [
        ([-9], "", True),
        ([1], "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", True),
        ([1], "MemoryError", True),
        ([None], "", True),
        ([-11], "MemoryError", False),
        ([1], "ZeroDivisionError: division by zero", False),
        ([3], "", False),
    ],
)
def test_a_kill_and_want_of_memory_are_told_from_a_crash(
    tmp_path: Path, codes: list[int | None], logged: str, *, killed: bool
) -> None:
    found = causes.Causes(tmp_path)
    if logged:
        found.errors.write_text(_record(_TRACE + logged))
    assert found.death(lambda: codes).killed is killed


@pytest.mark.parametrize(
    ("codes", "words"),
    [
        ([None], ""),
        ([0], ""),
        ([-9], "killed by signal 9"),
        ([-4], "signal 4 (SIGILL)"),
        ([-99], "signal 99"),
        ([3], "code 3"),
    ],
)
def test_exit_codes_are_put_into_words(codes: list[int | None], words: str) -> None:
    cause = causes.exit_cause(codes)
    assert words in cause
    assert bool(cause) == bool(words)


_DYING = """
import signal, sys
from penstock.replica.vllm.start import engine_process
engine_process.write_faults()
def forward():
    signal.raise_signal(int(sys.argv[1]))
forward()
"""


@pytest.mark.parametrize("number", [signal.SIGILL, signal.SIGSEGV, signal.SIGABRT])
def test_a_fatal_signal_is_told_by_name_and_by_the_deepest_frame(
    tmp_path: Path, number: signal.Signals
) -> None:
    found = causes.Causes(tmp_path)
    # What was logged before, and did no harm.
    found.errors.write_text(_record(_TRACE + "ValueError: one request"))
    program = tmp_path / "program.py"
    program.write_text(_DYING)
    done = subprocess.run(
        [sys.executable, str(program), str(int(number))],
        env=os.environ | {engine_process.FAULTS: str(found.faults)},
        check=False,
    )
    told = str(found.death(lambda: [done.returncode]))
    assert told.startswith(f"its process ended with signal {int(number)} ({number.name}), in ")
    assert "in forward (" in told
    assert "program.py, line " in told


def test_a_worker_that_was_killed_is_the_cause_and_not_what_was_cancelled_by_it(
    tmp_path: Path,
) -> None:
    found = causes.Causes(tmp_path)
    died = "Worker proc VllmWorker-1 died unexpectedly (exit code: -9), shutting down executor."
    found.errors.write_text(
        json.dumps({"message": died}) + "\n" + _record(_TRACE + "RuntimeError: cancelled")
    )
    death = found.death(lambda: [1])
    assert (death.killed, "killed by signal 9" in death.reason) == (True, True)


def test_of_a_fault_outside_python_the_main_threads_place_is_told() -> None:
    dump = (
        "Fatal Python error: Illegal instruction\n\n"
        "Thread 0x01 (most recent call first):\n"
        '  File "/usr/lib/python3.11/threading.py", line 324 in wait\n\n'
        "Thread 0x02 (most recent call first):\n"
        '  File "/x/site-packages/vllm/attention.py", line 12 in forward\n'
        '  File "/x/site-packages/vllm/core.py", line 3 in step\n'
    )
    assert causes.deepest_frame(dump) == "in forward (vllm/attention.py, line 12)"
    assert causes.deepest_frame("") == ""


def test_an_engine_that_a_signal_ends_while_it_starts_is_told_of_as_such(tmp_path: Path) -> None:
    error = RuntimeError(
        "Engine core initialization failed. See root cause above. Failed core proc(s): "
        "{'EngineCore_DP0': -11}"
    )
    signalled, logged = causes.Causes(tmp_path).start_failure(error)
    assert (signalled, logged) == ("its process ended with signal 11 (SIGSEGV)", "")


def test_pydantics_wrapping_is_cut_off() -> None:
    error = ValueError(
        "1 validation error for ModelConfig\n  Value error, Model architectures ['X'] are not "
        "supported for now. [type=value_error, input_value=ArgsKwargs((), {...}), input_type=x]"
    )
    said = causes.of_exception(error)
    assert said == "Model architectures ['X'] are not supported for now."


def _model(directory: Path) -> Path:
    directory.mkdir()
    (directory / "config.json").write_text("{}")
    (directory / "model.safetensors").write_bytes(bytes(100))
    return directory


def test_equal_files_have_one_version_and_changed_ones_another(tmp_path: Path) -> None:
    one, two = _model(tmp_path / "one"), _model(tmp_path / "two")
    assert facts.model_version(one) == facts.model_version(two)
    (two / "model.safetensors").write_bytes(bytes(99) + b"x")
    assert facts.model_version(one) != facts.model_version(two)
    (one / "chat_template.jinja").write_text("")
    assert facts.model_version(one) != facts.model_version(_model(tmp_path / "three"))


def test_a_changed_end_of_a_large_file_is_seen(tmp_path: Path) -> None:
    large = _model(tmp_path / "large")
    with (large / "model.safetensors").open("wb") as file:
        file.truncate(100 << 20)
    before = facts.model_version(large)
    with (large / "model.safetensors").open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"x")
    assert facts.model_version(large) != before
