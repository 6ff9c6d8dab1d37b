"""Causes read from an engine's log, and the hashes that tell engines apart."""

from __future__ import annotations

import json
import logging.config
import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.replica.vllm import causes, facts


def _record(exc_info: str, pid: int = 1) -> str:
    return json.dumps({"message": "failed", "pid": pid, "exc_info": exc_info}) + "\n"


_TRACE = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\n'


def test_the_cause_is_the_last_exception_that_is_not_about_another(tmp_path: Path) -> None:
    file = tmp_path / "causes.jsonl"
    file.write_text(
        _record(_TRACE + "ValueError: weights are\nbroken")
        + _record(_TRACE + "RuntimeError: init failed. See root cause above.")
        + "no json\n"
        + json.dumps({"message": "no exception"})
        + "\n"
        + _record(_TRACE + "KeyError: our own", pid=os.getpid())
    )
    assert causes.logged_cause(file) == "ValueError: weights are broken"
    assert causes.logged_cause(tmp_path / "none") == ""


def test_the_log_config_writes_errors_where_they_are_looked_for(tmp_path: Path) -> None:
    file = tmp_path / "causes.jsonl"
    config = json.dumps(causes.log_config(file, "WARNING"))
    logging.config.dictConfigClass(causes.log_config(file, "WARNING"))
    code = (
        "import json, logging.config, sys\n"
        "logging.config.dictConfig(json.loads(sys.argv[1]))\n"
        "log = logging.getLogger('vllm.x')\n"
        "log.warning('just so')\n"
        "try: 1/0\n"
        "except Exception: log.exception('EngineCore failed')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, config], capture_output=True, text=True, check=True
    )
    assert causes.logged_cause(file) == "ZeroDivisionError: division by zero"
    first, second = (json.loads(line) for line in done.stderr.splitlines())
    assert (first["level"], first["logger"], second["level"]) == ("WARNING", "vllm.x", "ERROR")


@pytest.mark.parametrize(
    ("codes", "words"),
    [([None], ""), ([0], ""), ([-9], "killed by signal 9"), ([-11], "signal 11"), ([3], "code 3")],
)
def test_exit_codes_are_put_into_words(codes: list[int | None], words: str) -> None:
    cause = causes.exit_cause(codes)
    assert words in cause
    assert bool(cause) == bool(words)


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


def test_the_config_hash_knows_no_order() -> None:
    assert facts.config_hash({"a": 1, "b": 2}) == facts.config_hash({"b": 2, "a": 1})
    assert facts.config_hash({"a": 1}) != facts.config_hash({"a": 2})
