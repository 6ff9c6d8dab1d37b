"""The locks: exact pins, each with the hashes of its files."""

from __future__ import annotations

import pytest

import locked
from places import LOCKS

NAMES = ("clients", "core", "cpu", "cuda", "dev", "torch-ordinary", "uv")
A, B = ("sha256:" + c * 64 for c in "ab")


@pytest.mark.parametrize("name", NAMES)
def test_every_requirement_is_pinned_and_hashed(name: str) -> None:
    entries = locked.parse((LOCKS / f"{name}.txt").read_text())
    assert entries
    assert not [entry.pin for entry in entries if "==" not in entry.version or not entry.hashes]


@pytest.mark.parametrize("name", ["cuda", "torch-ordinary"])
def test_ordinary_torch_is_pinned_so_that_no_other_build_of_it_fits(name: str) -> None:
    text = (LOCKS / f"{name}.txt").read_text()
    assert "\ntorch===2." in text
    assert "\ntorch==2." not in text


def test_the_cpu_torch_has_the_hashes_of_both_machines_and_four_pythons() -> None:
    known = locked.hashes((LOCKS / "cpu.txt").read_text())
    (pin,) = (version for version in known if version.startswith("torch==") and "+cpu" in version)
    assert len(known[pin]) >= 8


def test_a_lock_is_read_as_it_is_written() -> None:
    text = f"one==1 ; python_version < '3.13' \\\n    --hash={A} \\\n    --hash={B}\ntwo==2\n"
    assert locked.render(locked.parse(text)) == text
    assert locked.pins(text) == "one==1 ; python_version < '3.13'\ntwo==2\n"
    assert locked.without(text, {"one"}) == "two==2\n"


def test_a_version_keeps_the_hashes_that_were_known_of_it() -> None:
    old = {"one==1": {A}, "two==1": {A}}
    merged = locked.with_hashes("one==1\ntwo==2\n", {"one==1": {B}, "two==2": {B}}, old)
    assert locked.hashes(merged) == {"one==1": {A, B}, "two==2": {B}}
