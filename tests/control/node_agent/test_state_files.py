"""What a node agent remembers across its own restarts."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.control.errors import InvalidInput
from penstock.control.node_agent.replica_record import (
    AdapterFailure,
    HeldAdapter,
    Phase,
    ReplicaRecord,
)
from penstock.control.node_agent.state_files import StateFiles, checked
from penstock.control.state.fleet.replica import ReplicaStart, StartKind, StartStage
from penstock.v1 import inference_pb2, nodes_pb2

SPEC = nodes_pb2.ReplicaSpec(
    replica_id="mini-1",
    deployment="mini",
    revision=7,
    engine="simulated",
    model="penstock-mini",
    engine_args=["ttft_ms=20"],
    adapters=[
        inference_pb2.Adapter(name="json@1", source="penstock-mini/json"),
        inference_pb2.Adapter(name="pirate@2", digest="ab" * 32, pinned=True),
    ],
    max_ongoing=9,
    max_adapters=4,
)
RECORD = ReplicaRecord(
    SPEC,
    Phase.READY,
    pid=4321,
    process_started_at=17.25,
    started_at=datetime(2030, 5, 6, 7, 8, 9, 123456, tzinfo=UTC),
    ready_at=datetime(2030, 5, 6, 7, 8, 20, tzinfo=UTC),
    address="127.0.0.1:5000",
    max_model_len=2048,
    capacity=8,
    start=ReplicaStart(StartKind.WARM, "so", (StartStage("claim", 40),)),
    endpoints=("/v1/completions",),
    restarts=2,
    failures=1,
    exit_code=-9,
    last_error="was killed by SIGKILL",
    stop_by=datetime(2030, 5, 6, 7, 9, tzinfo=UTC),
    adapters=(HeldAdapter("pirate@2", "ab" * 32),),
    failed_adapters=(AdapterFailure("json@1", "cd" * 32, "its rank is 64"),),
    adapter_slots=4,
    max_adapter_rank=16,
    dropped_adapters=("old@1",),
)


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    StateFiles(tmp_path).save(RECORD)
    assert list(StateFiles(tmp_path).load()) == [RECORD]


def test_a_process_start_time_survives_to_the_last_digit(tmp_path: Path) -> None:
    @given(st.integers(0, 10**10).map(lambda ticks: ticks / 100))
    def survives(started_at: float) -> None:
        files = StateFiles(tmp_path)
        files.save(ReplicaRecord(SPEC, process_started_at=started_at))
        assert next(files.load()).process_started_at == started_at

    survives()


def test_files_of_older_and_of_newer_agents_are_read(tmp_path: Path) -> None:
    files = StateFiles(tmp_path)
    older = {
        "spec": {"replica_id": "old-1", "deployment": "mini", "revision": "3"},
        "phase": "ready",
        "pid": 4321,
        "process_started_at": 17.25,
        "started_at": "2030-05-06T07:08:09+00:00",
        "address": "127.0.0.1:5000",
        "max_model_len": 2048,
        "capacity": 8,
        "restarts": 2,
        "failures": 0,
        "exit_code": 0,
        "last_error": "",
    }
    newer = {**older, "spec": {"replica_id": "new-1", "moon": "full"}, "tide": "high"}
    for name, content in (("old-1", older), ("new-1", newer)):
        (tmp_path / "replicas" / f"{name}.json").write_text(json.dumps(content))
    new, old = files.load()
    assert (old.pid, old.phase, old.restarts, old.spec.revision) == (4321, Phase.READY, 2, 3)
    assert (old.adapters, old.failed_adapters, old.adapter_slots) == ((), (), 0)
    assert (new.spec.replica_id, new.address, new.ready_at) == ("new-1", "127.0.0.1:5000", None)


def test_a_forgotten_replica_leaves_nothing(tmp_path: Path) -> None:
    files = StateFiles(tmp_path)
    files.save(RECORD)
    files.forget("mini-1")
    files.forget("mini-1")
    assert list((tmp_path / "replicas").iterdir()) == []


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"spec": 7}', '{"spec": {"x": 1}}'])
def test_an_unreadable_file_is_set_aside_and_the_others_are_read(
    tmp_path: Path, content: str
) -> None:
    files = StateFiles(tmp_path)
    files.save(RECORD)
    (tmp_path / "replicas" / "broken.json").write_text(content)
    assert [record.spec.replica_id for record in files.load()] == ["mini-1"]
    assert (tmp_path / "replicas" / "broken.unreadable").read_text() == content


@pytest.mark.parametrize("replica_id", ["", ".", "..", "a/b", "-x", "a" * 200, "a\n", "ä"])
def test_an_id_that_cannot_be_a_file_name_is_refused(replica_id: str) -> None:
    with pytest.raises(InvalidInput):
        checked(replica_id)
