"""The phases of a replica, and what the head is told of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from penstock.control.errors import Code
from penstock.control.node_agent.replica_record import (
    NO_PROCESS,
    TRANSITIONS,
    AdapterFailure,
    HeldAdapter,
    Phase,
    ReplicaRecord,
    as_registered,
    to_status,
)
from penstock.v1 import inference_pb2, nodes_pb2
from tests.fakes.control_errors import raises_code

SPEC = nodes_pb2.ReplicaSpec(
    replica_id="r-1",
    deployment="mini",
    revision=3,
    adapters=[inference_pb2.Adapter(name="pirate@1", source="penstock-mini/pirate")],
)


@pytest.mark.parametrize("phase", Phase)
def test_every_phase_can_end_in_stopped(phase: Phase) -> None:
    assert phase is Phase.STOPPED or Phase.STOPPED in TRANSITIONS[phase]


def test_a_stopped_replica_never_comes_back() -> None:
    with raises_code(Code.IMPOSSIBLE_TRANSITION, match="r-1 cannot go from stopped to starting"):
        ReplicaRecord(SPEC, Phase.STOPPED).advance(Phase.STARTING)


def test_staying_in_a_phase_is_no_transition() -> None:
    assert ReplicaRecord(SPEC, Phase.READY).advance(Phase.READY).phase is Phase.READY


@pytest.mark.parametrize("phase", Phase)
def test_every_phase_has_its_word_in_the_contract(phase: Phase) -> None:
    status = to_status(ReplicaRecord(SPEC, phase), Path("x.log"))
    name = nodes_pb2.ReplicaPhase.Name(status.phase)
    assert name == f"REPLICA_PHASE_{phase.value.upper()}"


def test_what_is_told_of_adapters_is_what_the_replica_told_and_not_what_it_is_to_hold() -> None:
    silent = to_status(ReplicaRecord(SPEC, Phase.READY), Path("x.log"))
    assert (list(silent.adapters), silent.adapter_slots) == ([], 0)
    record = ReplicaRecord(
        SPEC,
        Phase.READY,
        adapters=(HeldAdapter("json@2", "ab" * 32),),
        failed_adapters=(AdapterFailure("pirate@1", "cd" * 32, "its rank is 64"),),
        adapter_slots=4,
        max_adapter_rank=16,
    )
    status = to_status(record, Path("x.log"))
    assert (list(status.adapters), list(status.adapter_digests)) == (["json@2"], ["ab" * 32])
    (failure,) = status.failed_adapters
    assert (failure.name, failure.digest) == ("pirate@1", "cd" * 32)
    assert (failure.reason, status.adapter_slots) == ("its rank is 64", 4)
    assert status.max_adapter_rank == 16


def test_whether_it_resumes_is_told_as_its_process_says_it_and_forgotten_with_that() -> None:
    failed = nodes_pb2.RegisterReplicaRequest(no_resume="seeded differs", resume_test_failed=True)
    record = replace(ReplicaRecord(SPEC), **as_registered(ReplicaRecord(SPEC), failed))
    status = to_status(record, Path("x.log"))
    assert (status.resumes, status.no_resume) == (False, "seeded differs")
    assert status.resume_test_failed
    resumes = nodes_pb2.RegisterReplicaRequest(resumes=True)
    record = replace(record, **as_registered(record, resumes))
    status = to_status(record, Path("x.log"))
    assert (status.resumes, status.no_resume, status.resume_test_failed) == (True, "", False)
    assert not to_status(replace(record, **NO_PROCESS), Path("x.log")).resumes


def test_a_record_names_every_digest_that_its_replica_holds_or_is_to_hold() -> None:
    wanted = nodes_pb2.ReplicaSpec(adapters=[inference_pb2.Adapter(name="b@1", digest="bb" * 32)])
    record = ReplicaRecord(wanted, adapters=(HeldAdapter("a@1", "aa" * 32), HeldAdapter("c@1", "")))
    assert record.adapter_digests == {"aa" * 32, "bb" * 32}


def test_moments_are_told_in_milliseconds_since_1970() -> None:
    record = ReplicaRecord(SPEC, started_at=datetime(1970, 1, 1, 0, 0, 2, 500_000, tzinfo=UTC))
    status = to_status(record, Path("/data/logs/r-1.log"))
    assert status.started_at_ms == 2500
    assert status.next_start_ms == 0
    assert status.log_path == "/data/logs/r-1.log"
    assert (status.replica_id, status.deployment, status.revision) == ("r-1", "mini", 3)
