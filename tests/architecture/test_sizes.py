"""Files and functions stay small enough to read at a glance; what outgrows its room is named."""

from __future__ import annotations

import ast
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE_LINES = 400
FUNCTION_LINES = 40

# What is longer, and why it may be.
EXCUSED_FILES: dict[str, str] = {}
EXCUSED_FUNCTIONS: dict[str, str] = {
    "control/penstock/control/cli/processes.py:head": "two lines for each option, nothing else",
    "control/penstock/control/cli/processes.py:node": "two lines for each option, nothing else",
    "control/penstock/control/cli/serve.py:serve": "two lines for each option, nothing else",
}


def tracked(*patterns: str) -> list[Path]:
    """The repository's files, new ones included, that git does not ignore."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    return [ROOT / name for name in sorted(set(listed)) if (ROOT / name).exists()]


def test_no_file_outgrows_its_room() -> None:
    wrong = []
    for path in tracked("*.py", "*.cc", "*.h", "*.proto"):
        name = path.relative_to(ROOT).as_posix()
        lines = len(path.read_text().splitlines())
        if lines > FILE_LINES and name not in EXCUSED_FILES:
            wrong.append(f"{name}: {lines} lines")
    assert not wrong, f"over {FILE_LINES} lines:\n" + "\n".join(wrong)


def test_no_function_outgrows_a_screen() -> None:
    wrong = []
    for path in tracked("*.py"):
        name = path.relative_to(ROOT).as_posix()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > FUNCTION_LINES and f"{name}:{node.name}" not in EXCUSED_FUNCTIONS:
                    wrong.append(f"{name}:{node.lineno} {node.name}: {lines} lines")
    assert not wrong, f"over {FUNCTION_LINES} lines:\n" + "\n".join(wrong)


def test_no_excuse_outlives_its_reason() -> None:
    gone = [name for name in EXCUSED_FILES if not (ROOT / name).exists()]
    assert not gone
