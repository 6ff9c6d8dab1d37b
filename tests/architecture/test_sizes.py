"""Files and functions stay small enough to read at a glance; what outgrows its room is named."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.architecture.cpp_functions import Function, functions

ROOT = Path(__file__).resolve().parents[2]
FILE_LINES = 400
FUNCTION_LINES = {"*.py": 40, "*.cc": 60, "*.h": 60}

# What is longer, and why it may be.
EXCUSED_FILES: dict[str, str] = {}
EXCUSED_FUNCTIONS = {
    "control/penstock/control/cli/processes.py:head": "a table of settings, with no decision in it",
    "control/penstock/control/cli/serve.py:asked": "a table of settings, with no decision in it",
    "gateway_cpp/src/base/flags.cc:flags": "a table of all flags, with no decision in it",
    "replica/native/module.cc:PYBIND11_MODULE": "a page of registrations, with no decision in it",
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


def long_files() -> dict[str, int]:
    """The files over the limit, and their lines."""
    lines = {
        path.relative_to(ROOT).as_posix(): len(path.read_text().splitlines())
        for path in tracked("*.py", "*.cc", "*.h", "*.proto")
    }
    return {name: count for name, count in lines.items() if count > FILE_LINES}


def python_functions(text: str) -> Iterator[Function]:
    """Every function of a Python source; its lines are those of the body, as in C++."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0].lineno
            yield Function(node.name, first, (node.end_lineno or first) - first + 1)


def long_functions() -> dict[str, int]:
    """The functions over the limit of their language, and their lines."""
    return {
        f"{path.relative_to(ROOT).as_posix()}:{function.name}": function.lines
        for pattern, limit in FUNCTION_LINES.items()
        for path in tracked(pattern)
        for function in (python_functions if pattern == "*.py" else functions)(path.read_text())
        if function.lines > limit
    }


@pytest.mark.parametrize(
    ("found", "excused"),
    [(long_files, EXCUSED_FILES), (long_functions, EXCUSED_FUNCTIONS)],
    ids=["files", "functions"],
)
def test_what_outgrows_its_room_is_named_with_a_reason_and_nothing_else_is(
    found: Callable[[], dict[str, int]], excused: dict[str, str]
) -> None:
    long = found()
    new = [f"{name}: {lines} lines" for name, lines in long.items() if name not in excused]
    assert not new, f"over {FILE_LINES} lines a file, {FUNCTION_LINES} a function:\n" + "\n".join(
        new
    )
    assert not set(excused) - set(long), "excused, though short or gone"


def test_functions_of_cpp_are_found_with_their_lines() -> None:
    text = """
    #define OPEN {
    namespace a {
    struct Value { int x = 1; std::vector<int> y{1, 2}; };
    // void no() {
    Value::Value(int x) : x_{x}, y_{1, 2} {
      auto each = [](int) {
        return '{';
      };
    }
    auto name(std::string_view s) -> std::pair<int, int> { return {1, 2}; }
    TEST(Suite, Name) {
      EXPECT_EQ(R"({)", "}");
    }
    constexpr int kTable[] = {f(1), 2};
    }  // namespace a
    """
    assert [(f.name, f.lines) for f in functions(text)] == [
        ("Value::Value", 5),
        ("name", 1),
        ("TEST", 3),
    ]
