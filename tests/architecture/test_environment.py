"""The process's environment is read and written in few places, whichever way that is spelt."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.architecture.cpp_functions import without_noise

ROOT = Path(__file__).resolve().parents[2]
NAMES = {"environ", "environb", "getenv", "getenvb", "putenv", "unsetenv"}
CPP_NAMES = re.compile(r"\b(secure_getenv|getenv|setenv|putenv|unsetenv|clearenv|environ)\b")

# Who may, and what for.
PYTHON_MAY = {
    "control/penstock/control/adapter_sources/hugging_face.py": "where that tool's cache lies",
    "control/penstock/control/cli/recording/replaying.py": "hands it on to what it becomes",
    "control/penstock/control/outside/processes.py": "hands it on to what it starts, with more",
    "control/penstock/control/outside/tracing.py": "a collector, by OpenTelemetry's variables",
    "control/penstock/control/outside/warm_processes.py": "hands parts of it on to a zygote",
    "control/penstock/control/router/sandbox.py": "takes all but a few out of it",
    "replica/penstock/replica/providers/secrets.py": "secrets that a deployment names by variable",
    "replica/penstock/replica/settings.py": "the log level of a replica that is started by hand",
    "replica/benchmarks/warm_start.py": "hands it on to what it claims",
    "replica/penstock/replica/warm_pool/process.py": "a claimed member gets a replica's",
    "replica/penstock/replica/vllm/start/environment.py": "vLLM is configured by variables",
    "replica/penstock/replica/vllm/start/memory/downloads.py": "where the hub's tool keeps models",
    "replica/penstock/replica/vllm/start/engine_process.py": "tells the engine its parent",
}
CPP_MAY = {"gateway_cpp/src/gateway.cc": "a collector, by OpenTelemetry's variables"}


def python_uses(text: str) -> Iterator[str]:
    """Every mention of the environment in a Python source, by any name for `os`, also as text."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Attribute(attr=name) | ast.Constant(value=str(name)) if name in NAMES:
                yield f"line {node.lineno}: {name}"
            case ast.ImportFrom(module="os" | "posix", names=aliases):
                yield from (
                    f"line {node.lineno}: {alias.name}"
                    for alias in aliases
                    if alias.name in {*NAMES, "*"}
                )


def cpp_uses(text: str) -> Iterator[str]:
    """Every mention of the environment in a C++ source."""
    yield from CPP_NAMES.findall(without_noise(text))


def sources(pattern: str, *folders: str) -> list[Path]:
    """The files of the rooms that are not built ones."""
    found = [path for folder in folders for path in (ROOT / folder).rglob(pattern)]
    assert found, f"no {pattern} in {folders}"
    return found


def test_python_asks_the_environment_only_where_it_may() -> None:
    users = {
        path.relative_to(ROOT).as_posix(): uses
        for path in sources("*.py", "control", "replica", "adapters", "evals")
        if (uses := list(python_uses(path.read_text())))
    }
    assert {name: users[name] for name in set(users) - set(PYTHON_MAY)} == {}
    assert not set(PYTHON_MAY) - set(users), "allowed, and does not"


def test_cpp_asks_the_environment_only_where_it_may() -> None:
    users = {
        path.relative_to(ROOT).as_posix(): uses
        for path in sources("*.[hc]*", "gateway_cpp/src", "replica/native", "evals/native")
        if path.is_file() and (uses := list(cpp_uses(path.read_text())))
    }
    assert {name: users[name] for name in set(users) - set(CPP_MAY)} == {}
    assert not set(CPP_MAY) - set(users), "allowed, and does not"


@pytest.mark.parametrize(
    "spelling",
    [
        "import os\nos.environ['A']",
        "import os as o\no.environ.get('A')",
        "from os import environ",
        "from os import getenv as g",
        "from os import *",
        "import os\nos.getenv('A')",
        "import os\nos.putenv('A', 'b')",
        "import os\ngetattr(os, 'environ')",
        "import posix\nposix.environ",
        "__import__('os').environb",
    ],
)
def test_every_spelling_is_found_in_python(spelling: str) -> None:
    assert list(python_uses(spelling))


@pytest.mark.parametrize(
    "spelling", ["std::getenv(name)", "extern char** environ;", "setenv(a,b,1)"]
)
def test_every_spelling_is_found_in_cpp(spelling: str) -> None:
    assert list(cpp_uses(spelling))


def test_a_comment_or_a_childs_environment_is_no_use_of_it() -> None:
    assert not list(python_uses("# os.environ\nrun(env={'A': 'b'})"))
    assert not list(cpp_uses('// getenv\nsay("getenv");'))
