"""Whose the logs of a folder are."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.control.machine_logs.sources import (
    REPLICA_BEGINS,
    LogFolder,
    head_sources,
    node_sources,
)

BEGUN = f'{REPLICA_BEGINS}"time": "2026-01-31T12:00:00.000Z"}}\n'


@pytest.fixture
def folder(tmp_path: Path) -> LogFolder:
    for name in ("head", "comparer", "gateway-gw-1", "node-agent", "warm-pool", "program-mini"):
        (tmp_path / f"{name}.log").write_text("x\n")
    for name in ("mini-1", "gateway-mini-3f2a1c"):
        (tmp_path / f"{name}.log").write_text(BEGUN)
    (tmp_path / "old-1.log.20260131T120000.123Z").write_text(BEGUN)
    (tmp_path / "stranger.log").write_text("x\n")
    return LogFolder(tmp_path)


def of_node(folder: LogFolder, *, beside_head: bool) -> dict[str, bool]:
    found = node_sources(folder, "n1", {"mini-1"}.__contains__, beside_head=beside_head)
    return {" ".join(each.author).strip(): each.written for each in found}


def test_head_and_agent_of_one_folder_tell_of_each_log_once(folder: LogFolder) -> None:
    of_head = [" ".join(each.author).strip() for each in head_sources(folder)]
    assert of_head == ["comparer", "gateway gw-1", "head"]
    assert of_node(folder, beside_head=True) == {
        "replica gateway-mini-3f2a1c": False,
        "replica mini-1": True,
        "node n1": True,
        "replica old-1": False,
        "program mini": True,
        "warm-pool": True,
    }


def test_an_agent_tells_of_a_gateway_that_logs_beside_it(folder: LogFolder) -> None:
    assert "gateway gw-1" in of_node(folder, beside_head=False)


def test_a_replica_whose_log_has_not_begun_is_there(folder: LogFolder) -> None:
    folder.path("mini-2").touch()
    found = node_sources(folder, "n1", {"mini-2"}.__contains__, beside_head=True)
    assert "mini-2" in [each.author.name for each in found]


def test_a_folder_that_is_not_there_has_no_logs(tmp_path: Path) -> None:
    assert not list(head_sources(LogFolder(tmp_path / "none")))
