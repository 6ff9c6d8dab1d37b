from __future__ import annotations

from pathlib import Path

from penstock.evals.machine import cpu_model, facts


def test_the_cpu_model_is_the_first_one_named() -> None:
    assert cpu_model("processor\t: 0\nmodel name\t: Fast One\nmodel name\t: Other\n") == "Fast One"


def test_a_cpu_without_a_name_is_its_architecture() -> None:
    assert cpu_model("processor: 0\n")


def test_outside_a_checkout_the_revision_is_unknown(tmp_path: Path) -> None:
    found = facts(tmp_path)
    assert (found.revision, found.changed) == ("unknown", False)
    assert found.cores >= 1
    assert found.memory_gib > 0
