"""What lines say of themselves, and whom they name."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.control.machine_logs.lines import (
    LONGEST,
    is_of,
    level_of,
    logged,
    naming,
    our_ids,
    time_of,
    written,
)
from penstock.control.machine_logs.values import REPLICA, Author

NOON = 1_769_860_800_000_000  # 2026-01-31T12:00:00Z
OURS = '{"time":"2026-01-31T12:00:00.123Z","level":"info","message":"request settled"}'
R1 = Author(REPLICA, "mini-3f2a1c")


def test_a_line_of_ours_is_told_as_it_is() -> None:
    assert logged(R1, OURS, 7) == (R1, 7, "info", OURS)
    assert time_of(OURS) == NOON + 123_000


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ('{"level": "warning", "message": "x"}', "warning"),
        ('{"level":"critical","message":"of an older version"}', "error"),
        ('{"message":"level"}', "info"),
        ("(EngineCore pid=7) WARNING 11-27 12:00:00 [core.py:3] slow", "warning"),
        ("INFO 11-27 12:00:00 [core.py:3] ready", "info"),
        ("CRITICAL: it burns", "error"),
        ("[W1128 03:02:39.269635237 utils.cpp:68] Warning: NUMA binding", "warning"),
        ("E1128 03:03:25.307592   26139 chttp2_transport.cc:1403] too many pings", "error"),
        ("I1128 03:03:25.307592   26139 chttp2_transport.cc:1403] Got goaway", "info"),
        ("penstock-gateway: error: 127.0.0.1:8080 is taken", "error"),
        ("torch.OutOfMemoryError: CUDA out of memory", "error"),
        ("information: none", "info"),
        ('  File "x.py", line 3, in <module>', "info"),
    ],
)
def test_a_level_is_one_of_four_words_whoever_wrote_it(line: str, level: str) -> None:
    assert level_of(line) == level


def test_a_line_of_a_library_becomes_one_like_ours_at_its_neighbours_time() -> None:
    told = logged(R1, "WARNING 11-27 [x.py:3] it is\tslow", NOON)
    assert json.loads(told.text) == {
        "time": "2026-01-31T12:00:00.000Z",
        "level": "warning",
        "message": "WARNING 11-27 [x.py:3] it is\tslow",
    }


@given(st.text())
def test_whatever_is_written_is_told_as_an_object_with_time_and_level(line: str) -> None:
    told = json.loads(logged(R1, line, NOON).text)
    assert told["time"] == written(NOON)
    assert told["level"] in ("debug", "info", "warning", "error")


def test_a_line_that_has_no_end_is_told_in_part() -> None:
    endless = OURS.replace("settled", "x" * (2 * LONGEST))
    assert len(json.loads(logged(R1, endless, NOON).text)["message"]) == LONGEST


def test_a_line_that_was_cut_off_by_a_kill_is_told_as_text() -> None:
    glued = f"{OURS[:-20]}{OURS}"
    assert json.loads(logged(R1, glued, NOON).text)["message"] == glued


def test_a_secret_in_a_line_is_not_told() -> None:
    assert "hf_abcdefghijklmnop" not in logged(R1, "token hf_abcdefghijklmnop refused", NOON).text


def test_a_time_that_is_none_is_none() -> None:
    assert time_of(OURS.replace("01-31", "13-31")) is None
    assert time_of(f"said {OURS}") is None
    assert time_of('{"message":"\\"time\\":\\"2026-01-31T12:00:00.123Z\\""}') is None


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ('"request_id":"req_0123456789abcdef01234567"', True),
        ("vLLM: chatcmpl-req_0123456789abcdef01234567-0 aborted", True),
        ('"request_id":"req_0123456789abcdef012345678"', False),
        ('"client_request_id":"7"', True),
        ('"request_id": "7"', True),
        ('"attempts":7,"message":"7 of 7"', False),
        ('"client_request_id":"say \\"hi\\""', True),
    ],
)
def test_a_request_is_named_by_its_whole_id_and_a_short_one_only_where_ids_stand(
    line: str, named: bool
) -> None:
    names = naming(("req_0123456789abcdef01234567", "7", 'say "hi"'))
    assert names(line.encode()) is named


def test_of_a_line_that_names_a_clients_id_our_own_is_known() -> None:
    line = '{"request_id":"req_0123456789abcdef01234567","client_request_id":"mine"}'
    assert our_ids(line) == ["req_0123456789abcdef01234567"]


def test_a_deployments_are_its_replicas_and_its_program_and_no_other_deployments() -> None:
    assert is_of(R1, "mini")
    assert is_of(R1, "mini-3f2a1c")
    assert is_of(Author("program", "mini"), "mini")
    assert is_of(Author("head"), "head")
    assert not is_of(Author(REPLICA, "mini-2-3f2a1c"), "mini")
    assert not is_of(Author("gateway", "mini-3f2a1c"), "mini")
