"""What the replica reaches for inside vLLM is in one list, and a vLLM that has moved it is told."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from penstock.replica.values import CannotLoad
from penstock.replica.vllm import surface
from penstock.replica.vllm.surface.values import Stage, Touch
from tests.replica.vllm.surface_table import table

_ROOT = Path(__file__).parents[3]
_FOLDER = _ROOT / "replica/penstock/replica/vllm"
_TABLE = _ROOT / "docs/reference/vllm_touch_points.md"
_SOURCES = [path for path in sorted(_FOLDER.rglob("*.py")) if "surface" not in path.parts]
# Private names of others than vLLM and what it is built on, and loggers by their names.
_OTHERS = {"os._exit", "vllm.renderers."}


def _listed(user: str) -> set[str]:
    """All that the list says this file may touch: modules, names in them, and what these have."""
    names = (name for touch in surface.TOUCH_POINTS if user in touch.users for name in touch.names)
    found = set()
    for name in names:
        module, _, rest = name.partition(":")
        words = re.findall(r"\w+", rest)
        found |= {module, f"{module}:{words[0] if words else ''}", *words}
    return found


def _touched(path: Path) -> Iterator[str]:
    """What a source touches: imports of vLLM, names of its modules, private names of others."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.ImportFrom(module=str(module)) if module.split(".")[0] == "vllm":
                yield from (f"{module}:{alias.name}" for alias in node.names)
            case ast.Import():
                yield from (one.name for one in node.names if one.name.split(".")[0] == "vllm")
            case ast.Constant(value=str(text)) if re.fullmatch(r"vllm(\.\w+)+\.?", text):
                yield text
            case ast.Attribute(value=ast.Name(id="self" | "cls")):
                pass
            case ast.Attribute(attr=name) if re.match(r"_[a-z]", name):
                yield name if ast.unparse(node) not in _OTHERS else "os._exit"


@pytest.mark.parametrize("path", _SOURCES, ids=lambda path: path.relative_to(_FOLDER).as_posix())
def test_a_file_touches_nothing_of_vllm_that_the_list_does_not_name_for_it(path: Path) -> None:
    known = _listed(path.relative_to(_FOLDER).as_posix())
    wrong = [
        name
        for name in _touched(path)
        if name not in known | _OTHERS
        and name.replace(":", ".") not in known
        and ":".join(name.rsplit(".", 1)) not in known
    ]
    assert not wrong, f"put into {_FOLDER.name}/surface: {wrong}"


@pytest.mark.parametrize("touch", surface.TOUCH_POINTS, ids=lambda touch: touch.names[0])
def test_whoever_the_list_names_needs_it(touch: Touch) -> None:
    for user in touch.users:
        text = (_FOLDER / user).read_text()
        words = {word for name in touch.names for word in re.findall(r"\w+", name)[1:]}
        assert any(re.search(rf"\b{word}\b", text) for word in words), user
    assert touch.why
    assert touch.until


@pytest.mark.vllm
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("stage", Stage)
def test_the_vllm_that_is_installed_has_all_of_it(stage: Stage) -> None:
    pytest.importorskip("vllm")
    surface.check(stage)


@pytest.mark.vllm
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_methods_of_vllms_that_are_ours_now_are_in_the_list() -> None:
    pytest.importorskip("vllm")
    from penstock.replica.vllm.serving.client import TappedLLM
    from penstock.replica.vllm.serving.gauges import Gauges
    from penstock.replica.vllm.serving.models import CallModels

    for ours, user in (
        (TappedLLM, "serving/client.py"),
        (Gauges, "serving/gauges.py"),
        (CallModels, "serving/models.py"),
    ):
        taken = {name for name in vars(ours) if hasattr(ours.__base__, name)}
        taken -= {name for name in vars(object) if name != "__del__"}
        assert taken - {"__module__", "__annotations__", "__abstractmethods__", "_abc_impl"} <= (
            _listed(user)
        ), ours


class _Moved:
    """A part of some vLLM."""

    had: int

    def __init__(self) -> None:
        self.made = 1

    def does(self, first: int, second: int, third: int = 0) -> None:
        """Takes three."""


@pytest.fixture
def some_vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("some_vllm")
    module.__dict__.update(Moved=_Moved, KEYS={"KNOWN": 1})
    monkeypatch.setitem(sys.modules, "some_vllm", module)


@pytest.mark.usefixtures("some_vllm")
@pytest.mark.parametrize(
    "name",
    [
        "some_vllm",
        "some_vllm:Moved",
        "some_vllm:Moved{had, made, does}",
        "some_vllm:Moved.does(first, second)",
        "some_vllm:Moved.does(first, *, third)",
        "some_vllm:Moved.does()",
        "some_vllm:KEYS[KNOWN]",
    ],
)
def test_what_is_where_it_was_is_not_told(name: str) -> None:
    assert not list(surface.moved(name))


@pytest.mark.usefixtures("some_vllm")
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("some_vllm.gone", "some_vllm.gone"),
        ("some_vllm:Gone", "some_vllm:Gone"),
        ("some_vllm:Moved.gone(first)", "Moved.gone"),
        ("some_vllm:Moved{had, gone}", "has no gone"),
        ("some_vllm:Moved.does(second, first)", "has no second, first"),
        ("some_vllm:Moved.does(first, *, fourth)", "has no fourth"),
        ("some_vllm:Moved.does(first, second, third, fourth)", "has no fourth"),
        ("some_vllm:KEYS[KNOWN, GONE]", "has no GONE"),
    ],
)
def test_what_has_moved_is_told_by_name(name: str, told: str) -> None:
    (found,) = surface.moved(name)
    assert told in found


@pytest.mark.usefixtures("some_vllm")
def test_a_start_that_fails_for_it_says_what_moved_and_which_files_need_it() -> None:
    touch = Touch(Stage.APP, ("some_vllm:Gone",), ("serving/app.py",), "why", "until")
    surface.check(Stage.ENGINE, [touch])
    with pytest.raises(CannotLoad, match=r"some_vllm:Gone.*\(for serving/app\.py\)"):
        surface.check(Stage.APP, [touch])


def test_the_table_is_the_list() -> None:
    """If not: `python -m tests.replica.vllm.surface_table` writes it anew."""
    assert _TABLE.read_text() == table()
