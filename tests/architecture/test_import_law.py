"""The import law of the Python rooms holds, and breaks when it is broken."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("control", "replica", "adapters", "evals")

# package prefix -> prefixes of control that may import it from outside of it
ONLY_IN = {
    "fastapi": ("penstock.control.admin",),
    "grpc": (
        "penstock.control.rpc",
        "penstock.control.outside",
        "penstock.control.fallback",
        "penstock.replica",
    ),
    "typer": ("penstock.control.cli", "penstock.control.main", "penstock.evals"),
}
STATE_MAY_KNOW = ("penstock.control.state", "penstock.control.errors", "penstock.adapters")


def modules() -> list[tuple[str, Path]]:
    """Every module of the rooms: its import name and file."""
    found = []
    for room in ROOMS:
        for path in sorted((ROOT / room / "penstock").rglob("*.py")):
            name = path.relative_to(ROOT / room).with_suffix("").as_posix().replace("/", ".")
            found.append((name.removesuffix(".__init__"), path))
    return found


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


def test_state_is_pure() -> None:
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
        if within(name, ("penstock.control.state",))
        for other in imported(path)
        if not within(other, STATE_MAY_KNOW) and other.split(".")[0] not in allowed
    ]
    assert not wrong, "\n".join(wrong)


def test_only_settings_read_the_environment() -> None:
    wrong = [
        name
        for name, path in modules()
        if name.startswith("penstock.control.") and "os.environ" in path.read_text()
        if not name.endswith("settings")
    ]
    assert not wrong


def test_the_contracts_break_when_a_room_reaches_across(tmp_path: Path) -> None:
    for room in ROOMS:
        shutil.copytree(ROOT / room / "penstock", tmp_path / room / "penstock")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    victim = tmp_path / "adapters" / "penstock" / "adapters" / "__init__.py"
    victim.write_text(victim.read_text() + "\nimport penstock.evals\n")
    # -S: without the editable install, which would find the rooms in the repository.
    path = [*(str(tmp_path / room) for room in ROOMS), sysconfig.get_path("purelib")]
    script = f"import sys; sys.path += {path!r}; from importlinter.cli import lint_imports_command"
    done = subprocess.run(
        [sys.executable, "-S", "-c", script + "; lint_imports_command()"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Rooms know only the rooms below them BROKEN" in done.stdout
