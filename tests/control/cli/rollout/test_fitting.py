"""`penstock fit`, and what plans say of memory."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from penstock.control.state.fleet.memory import FitLine, FitVerdict, MemoryFit
from tests.control.cli.conftest import AskedHead
from tests.fakes.control_values import node

GIB = 1 << 30
LARGE = MemoryFit(
    FitVerdict.TOO_LARGE,
    (FitLine("weights", 15 * GIB, "15,360 MiB in files"),),
    15 * GIB,
    10 * GIB,
    "5.00 GiB are missing",
    ("max_model_len=8192", "another node"),
)
FILE = "penstock: v1\nkind: deployment\nname: chat\nmodel: m\n"


def with_node(asked_head: AskedHead) -> None:
    observing = asked_head.admin.cluster.observe(lambda view: view.with_node(node("n1")), "test")
    asyncio.run(observing)
    asked_head.admin.fits.told = LARGE


def test_a_sum_needs_no_head(asked_head: AskedHead) -> None:
    told = asked_head.run("fit", "penstock-mini", "--admin", "127.0.0.1:1")
    assert told.exit_code == 0, told.stderr
    first, *rows = told.stdout.splitlines()
    assert first == "penstock-mini on this machine"
    assert any(row.split()[:3] == ["KV", "cache", "1,024"] for row in rows)
    on_gpu = asked_head.run("fit", "penstock-mini", "--gpu", "a10g", "--json")
    assert json.loads(on_gpu.stdout)["free_bytes"] > 20 * GIB


def test_what_cannot_be_summed_is_one_line(asked_head: AskedHead) -> None:
    for words, said in (
        (("penstock-mini", "--gpu", "abacus"), "GPU abacus is not known"),
        (("penstock-mini", "--gpu", "l4", "--node", "n1"), "say one of them"),
        (("penstock-mini", "--node", "n1"), "n1"),
        (("penstock-mini", "--engine-arg", "max_modl_len=8"), "near to it: max_model_len"),
    ):
        told = asked_head.run("fit", *words)
        assert told.exit_code == 1
        assert said in told.stderr


def test_a_node_is_not_asked_about_settings_that_nothing_has(asked_head: AskedHead) -> None:
    with_node(asked_head)
    told = asked_head.run("fit", "m", "--node", "n1", "--engine-arg", "max_modl_len=8")
    assert told.exit_code == 1
    assert "near to it: max_model_len" in told.stderr


def test_a_node_is_asked_by_the_head(asked_head: AskedHead) -> None:
    with_node(asked_head)
    told = asked_head.run("fit", "m", "--node", "n1", "--max-adapters", "3")
    assert told.stdout.splitlines() == [
        "m on node n1",
        "  weights          15,360 MiB  15,360 MiB in files",
        "  needed           15,360 MiB",
        "  free             10,240 MiB",
        "It does not fit.",
        "Why: 5.00 GiB are missing.",
        "What helps: max_model_len=8192, or another node.",
    ]
    assert asked_head.admin.fits.asked[0].max_adapters == 3


def test_a_plan_says_what_a_node_would_refuse(asked_head: AskedHead, tmp_path: Path) -> None:
    with_node(asked_head)
    file = tmp_path / "penstock.yaml"
    file.write_text(FILE)
    told = asked_head.run("diff", "-f", str(file))
    assert (
        "node n1 would refuse it: a replica needs 15.0 GiB, 10.0 are free; 5.00 GiB are "
        "missing; what helps: max_model_len=8192, or another node"
    ) in told.stdout
