"""Metrics are declared once: the page of all is made from there, and nothing names another one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

import pytest

from tests.architecture.engine_metrics import ENGINE_METRICS, EngineMetric
from tests.architecture.metrics_reference import (
    GATEWAY_TABLE,
    PAGE,
    ROOT,
    Row,
    gateway_rows,
    head_rows,
    node_rows,
    page_of,
    replica_rows,
)

RENEW = ".venv/bin/python -m tests.architecture.metrics_reference"
NAMED = re.compile(r"\b(?:penstock_(?:gateway|head|node|replica)|gen_ai_server)_\w+|vllm:\w+")
PARTS = re.compile(r"_(bucket|sum|count)$")
# What vLLM declares a family by, and what that makes of it.
CLASSES = {"_gauge_cls": "gauge", "_counter_cls": "counter", "_histogram_cls": "histogram"}


def declared() -> list[Row]:
    """All of ours."""
    gateway = gateway_rows(GATEWAY_TABLE.read_text())
    return [*gateway, *head_rows(), *node_rows(), *replica_rows()]


def test_the_page_has_every_metric_as_it_is_declared() -> None:
    assert PAGE.read_text() == page_of(PAGE.read_text()), f"run: {RENEW}"


def test_the_reader_of_the_gateways_table_finds_every_row() -> None:
    text = GATEWAY_TABLE.read_text()
    assert len(list(gateway_rows(text))) == text.count("inline constexpr Metric k")


def test_no_two_families_have_one_name_in_either_format() -> None:
    """OpenMetrics knows a counter without its `_total`."""
    names = [row.name.removesuffix("_total") for row in declared()]
    assert len(names) == len(set(names)), sorted(n for n in names if names.count(n) > 1)


@pytest.mark.parametrize("row", declared(), ids=lambda row: str(row.name))
def test_a_declaration_says_what_it_counts_of_what(row: Row) -> None:
    assert (row.type == "counter") == row.name.endswith("_total")
    assert row.unit
    assert row.help.endswith(".")
    if row.unit == "seconds" and row.type != "counter":
        assert row.name.endswith("_seconds")


def named() -> Iterator[tuple[Path, str]]:
    """Each metric that docs, dashboards and rules name; one that ends in `_` stands for several."""
    files = (ROOT / "docs").rglob("*.md"), (ROOT / "deploy").rglob("*")
    for path in chain(*files):
        is_text = path.is_file() and path.suffix != ".pyc"
        if is_text and path.name != "vllm_touch_points.md":  # which names modules
            yield from ((path, name) for name in NAMED.findall(path.read_text()))


def test_docs_dashboards_and_rules_name_metrics_that_there_are() -> None:
    known = {row.name for row in declared()} | {each.name for each in ENGINE_METRICS}
    histograms = {row.name for row in declared() if row.type == "histogram"}
    histograms |= {each.name for each in ENGINE_METRICS if each.type == "histogram"}

    def is_known(name: str) -> bool:
        if name.endswith("_"):
            return any(one.startswith(name) for one in known)
        return name in known or PARTS.sub("", name) in histograms

    wrong = {f"{path.relative_to(ROOT)}: {name}" for path, name in named() if not is_known(name)}
    assert not wrong, "\n".join(sorted(wrong))


def of_pinned_vllm() -> dict[str, tuple[str, set[str]]]:
    """Each family of the vLLM that is installed, as a page has it: its type, and the words that its
    labels are written with."""
    spec = find_spec("vllm")
    assert spec, "vllm is not installed"
    assert spec.submodule_search_locations
    source = Path(spec.submodule_search_locations[0]) / "v1" / "metrics" / "loggers.py"
    found = {}
    for call in ast.walk(ast.parse(source.read_text())):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        kind, said = CLASSES.get(call.func.attr), {k.arg: k.value for k in call.keywords}
        name = said.get("name")
        if kind and isinstance(name, ast.Constant) and isinstance(name.value, str):
            words = ast.walk(said["labelnames"])
            labels = {ast.unparse(w).removeprefix("self.labelname_").strip("'") for w in words}
            suffix = "_total" if kind == "counter" else ""
            found[name.value + suffix] = (kind, labels)
    return found


@pytest.mark.parametrize("used", ENGINE_METRICS, ids=lambda each: str(each.name))
def test_the_pinned_vllm_has_each_metric_that_is_used(used: EngineMetric) -> None:
    kind, labels = of_pinned_vllm()[used.name]
    assert kind == used.type
    written = labels | ({"model_name", "engine"} if "labelnames" in labels else set())
    assert set(used.labels) <= written
