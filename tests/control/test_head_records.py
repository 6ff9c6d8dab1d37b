"""How prompts and answers are kept is said when the head starts; so is what is wrong with that."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.e2e.system import PENSTOCK

pytestmark = pytest.mark.processes


def refused(tmp_path: Path, *options: str) -> str:
    """What a head says that does not start."""
    command = [str(PENSTOCK), "head", "--data-dir", str(tmp_path / "data"), "--no-gateway"]
    command += ["--admin", "127.0.0.1:0", "--rpc", "127.0.0.1:0", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1, done.stdout
    return done.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "No such file or directory"),
        ('{"keys": "password"}', "keys: is 'password', must be a list of names"),
        ('{"patterns": {"x": "("}}', "patterns: x: '(' is no regular expression"),
    ],
)
def test_a_redaction_file_that_is_wrong_is_told_by_field_and_value(
    tmp_path: Path, text: str | None, words: str
) -> None:
    file = tmp_path / "redaction.json"
    if text is not None:
        file.write_text(text)
    said = refused(tmp_path, "--redaction", str(file))
    assert f"--redaction {file}: " in said
    assert words in said
    assert "Traceback" not in said


def test_a_time_that_is_none_is_refused(tmp_path: Path) -> None:
    said = refused(tmp_path, "--record-keep-days", "-1")
    assert "--record-keep-days is -1: it must be 0" in said
