"""The import law of the Python rooms holds, and breaks when it is broken."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("control", "replica", "adapters", "evals")

_BEDROCK = "penstock.replica.providers.bedrock_client"

# package prefix -> prefixes of modules that may import it from outside of it
ONLY_IN = {
    "boto3": ("penstock.control.adapter_sources.s3", _BEDROCK),
    "botocore": ("penstock.control.adapter_sources.s3", _BEDROCK),
    "urllib3": ("penstock.control.adapter_sources.s3", _BEDROCK),
    "mlflow": ("penstock.evals.mlflow_runs",),
    # vLLM's answers are made of its types.
    "openai": ("penstock.replica.providers.openai_client", "penstock.replica.vllm"),
    "python_multipart": ("penstock.control.adapter_sources.multipart_parts",),
    # vLLM's app is one of FastAPI's; the replica registers its handlers there.
    "fastapi": ("penstock.control.admin", "penstock.replica.vllm"),
    "grpc": (
        "penstock.control.rpc",
        "penstock.control.outside",
        "penstock.control.router",
        "penstock.control.fallback",
        "penstock.replica",
    ),
    "py3langid": ("penstock.evals.comparison.checks.language",),
    "opentelemetry": ("penstock.control.outside.tracing",),
    "prometheus_client": (
        "penstock.control.metrics",
        "penstock.evals.scraping",
        "penstock.replica.vllm.serving.metrics",
    ),
    "scipy": ("penstock.evals.comparison.intervals",),
    "deploy": (),  # lies beside the product, and is not installed with it
    "tools": (),  # likewise
    "typer": ("penstock.control.cli", "penstock.control.main", "penstock.evals"),
}
# pure package -> what else than the pure parts of the standard library it may know
PURE = {
    "penstock.control.declared.fields": ("penstock.control.errors",),
    "penstock.control.declared.listing": ("penstock.control.declared.fields",),
    "penstock.control.state": (
        *("penstock.control.declared.fields", "penstock.control.errors"),
        *("penstock.adapters", "regex"),
    ),
    "penstock.evals.comparison": (
        *("penstock.evals.errors", "jsonschema", "referencing"),
        *("numpy", "py3langid", "rapidfuzz", "regex", "scipy"),
    ),
}


@cache
def modules() -> list[tuple[str, Path]]:
    """Every module of the rooms: its import name and file."""
    found = []
    for room in ROOMS:
        for path in sorted((ROOT / room / "penstock").rglob("*.py")):
            name = path.relative_to(ROOT / room).with_suffix("").as_posix().replace("/", ".")
            found.append((name.removesuffix(".__init__"), path))
    return found


@cache
def imported(path: Path) -> set[str]:
    """The absolute names that a file imports, lazily too."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
    return names


def within(name: str, prefixes: tuple[str, ...]) -> bool:
    """Whether a module is one of the prefixes or below one."""
    return any(name == prefix or name.startswith(prefix + ".") for prefix in prefixes)


@pytest.mark.parametrize("library", ONLY_IN)
def test_a_foreign_library_stays_in_its_rooms(library: str) -> None:
    wrong = [
        name
        for name, path in modules()
        if any(within(other, (library,)) for other in imported(path))
        and not within(name, ONLY_IN[library])
    ]
    assert not wrong, f"{library} is imported by {wrong}"


@pytest.mark.parametrize("package", PURE)
def test_a_pure_package_neither_waits_nor_speaks_to_anybody(package: str) -> None:
    allowed = set(sys.stdlib_module_names) - {
        "asyncio",
        "time",
        "socket",
        "subprocess",
        "threading",
    }
    wrong = [
        f"{name} imports {other}"
        for name, path in modules()
        if within(name, (package,))
        for other in imported(path)
        if not within(other, (package, *PURE[package])) and other.split(".")[0] not in allowed
    ]
    assert not wrong, "\n".join(wrong)


# What no module may do: one that does, whom it reaches for, and the contract that says so.
BREACHES = (
    ("adapters", "penstock.evals", "Rooms know only the rooms below them"),
    ("control.state", "penstock.control.managers", "Arrows inside control point down"),
    ("control.admin", "penstock.control.rpc", "Arrows inside control point down"),
    ("replica.adapters", "penstock.replica.engine", "Arrows inside the replica point down"),
    ("replica.calls", "penstock.replica.vllm.engine", "Arrows inside the replica point down"),
    (
        "replica.vllm.guards",
        "penstock.replica.vllm.serving.tap",
        "Arrows inside the real engine point down",
    ),
    (
        "control.managers",
        "penstock.control.outside",
        "Only those who build a world know the outside",
    ),
    ("control.managers", "penstock.evals.comparison", "The comparer alone knows the comparison"),
    (
        "control.state.tenancy",
        "penstock.control.state.fleet.health",
        "Topics of state know each other through named doors",
    ),
    (
        "control.managers.tenancy",
        "penstock.control.managers.fleet",
        "Topics of managers know each other through named doors",
    ),
    (
        "control.store.tenancy",
        "penstock.control.store.adapters",
        "Topics of store do not know each other",
    ),
    (
        "control.admin.tenancy",
        "penstock.control.admin.fleet",
        "Topics of admin know each other through named doors",
    ),
    (
        "control.cli.tenancy",
        "penstock.control.cli.fleet",
        "Topics of cli do not know each other",
    ),
)


@pytest.fixture(scope="module")
def verdict(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What import-linter says of rooms with all of these in them: it takes ten seconds a time."""
    folder = tmp_path_factory.mktemp("rooms")
    copy_rooms(folder)
    for module, reaches, _ in BREACHES:
        room = module.partition(".")[0]
        victim = (folder / room / "penstock").joinpath(*module.split(".")) / "__init__.py"
        victim.write_text(victim.read_text() + f"\nimport {reaches}\n")
    broken = lint_imports(folder)
    assert broken.returncode == 1, broken.stdout + broken.stderr
    return broken.stdout


@pytest.mark.parametrize(("module", "reaches", "contract"), BREACHES)
def test_the_contracts_break_when_one_reaches_across(
    verdict: str, module: str, reaches: str, contract: str
) -> None:
    assert f"{contract} BROKEN" in verdict
    told = verdict.partition("Broken contracts")[2].partition(f"\n{contract}\n")[2]
    assert re.search(rf"penstock\.{module} -> {reaches}\b", told.partition("\n----")[0])


@pytest.mark.parametrize("room", [".", "managers", "admin", "cli", "store"])
def test_a_module_of_control_without_a_place_in_the_law_breaks_it(
    tmp_path: Path, room: str
) -> None:
    copy_rooms(tmp_path)
    (tmp_path / "control" / "penstock" / "control" / room / "stray.py").write_text('"""Stray."""\n')
    broken = lint_imports(tmp_path)
    assert broken.returncode == 1, broken.stdout + broken.stderr
    assert "stray" in broken.stdout


def test_every_topic_of_state_has_its_doors_named() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (doors,) = [c for c in contracts["contracts"] if c["name"].startswith("Topics of state")]
    state = ROOT / "control" / "penstock" / "control" / "state"
    topics = {path.parent.name for path in state.glob("*/__init__.py")}
    assert {name.rpartition(".")[2] for name in doors["protected_modules"]} == topics


def copy_rooms(folder: Path) -> None:
    """A copy of the rooms and their contracts, to break."""
    for room in ROOMS:
        shutil.copytree(
            ROOT / room / "penstock",
            folder / room / "penstock",
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    shutil.copy(ROOT / "pyproject.toml", folder)


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    """import-linter's verdict on such a copy."""
    # -S: without the editable install, which would find the rooms in the repository.
    path = [*(str(folder / room) for room in ROOMS), sysconfig.get_path("purelib")]
    script = f"import sys; sys.path += {path!r}; from importlinter.cli import lint_imports_command"
    return subprocess.run(
        [sys.executable, "-S", "-c", script + "; lint_imports_command()"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
