"""A machine on which Penstock cannot run is told so at once, in one line."""

from __future__ import annotations

import ast
import re

import pytest

from machine import here, refusal
from places import ROOT


@pytest.mark.parametrize(
    ("system", "glibc", "python", "said"),
    [
        ("Darwin", False, (3, 13), "this is macOS"),
        ("Windows", False, (3, 13), "this is Windows"),
        ("Linux", False, (3, 13), "musl"),
        ("Linux", True, (3, 10), r"Python 3\.10 .* is too old"),
        ("Darwin", False, (3, 9), "this is macOS"),
    ],
)
def test_what_cannot_work_is_refused_in_one_line(
    system: str, glibc: bool, python: tuple[int, int], said: str
) -> None:
    refused = refusal(system, glibc=glibc, python=python)
    assert refused is not None
    assert "\n" not in refused
    assert re.search(said, refused)


def test_linux_with_glibc_and_a_python_of_today_goes_on() -> None:
    assert refusal("Linux", glibc=True, python=(3, 11)) is None
    assert here() is None


@pytest.mark.parametrize("name", ["main.py", "machine.py"])
def test_what_refuses_an_old_python_is_read_by_it(name: str) -> None:
    ast.parse((ROOT / "setup" / name).read_text(), feature_version=(3, 7))
