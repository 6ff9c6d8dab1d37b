"""Peers of two versions understand each other: what is on the wire is only added to."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.architecture.proto_table import (
    KEPT,
    PROTO,
    RENEW,
    breaks,
    parsed,
    renewed,
    table_of,
    text_of,
)

BEFORE = """
syntax = "proto3";
package penstock.v1;
service Nodes { rpc Register(Node) returns (stream Node); }
enum Phase { UNKNOWN = 0; READY = 1; }
message Node {
  string id = 1;
  repeated uint32 gpus = 2;
  Phase phase = 3;
  reserved 4, 6 to 7;
  oneof where { string host = 8; bytes address = 9; }
  message Inner { bool up = 1; }
  Inner inner = 10;
}
"""


def test_what_is_on_the_wire_is_only_added_to() -> None:
    wrong = list(breaks(parsed(KEPT.read_text()), table_of(PROTO)))
    assert not wrong, "\n".join(wrong)


def test_all_that_is_on_the_wire_is_written_down() -> None:
    assert KEPT.read_text() == text_of(table_of(PROTO)), f"on purpose? then: {RENEW}"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("repeated uint32 gpus = 2;", "", "field Node 2 (repeated uint32 gpus) is gone"),
        ("repeated uint32 gpus = 2;", "repeated uint32 gpus = 5;", "say `reserved 2;`"),
        ("repeated uint32 gpus", "repeated uint64 gpus", "was repeated uint32 gpus, and is"),
        ("repeated uint32 gpus", "uint32 gpus", "and is uint32 gpus"),
        ("string id", "optional string id", "and is optional string id"),
        ("string id", "string name", "was string id, and is string name"),
        ("Phase phase", "Inner phase", "and is .penstock.v1.Node.Inner phase"),
        ("reserved 4, 6 to 7;", "reserved 6 to 7;", "reserved Node 4 (for good) is gone"),
        ("reserved 4, 6 to 7;", "reserved 4, 6; string zone = 7;", "reserved Node 7 (for good)"),
        ("string host = 8; bytes", "bytes", "field Node 8 (oneof where string host) is gone"),
        ("oneof where { string host = 8; ", "string host = 8; oneof where { ", "is string host"),
        ("bool up = 1;", "int32 up = 1;", "field Node.Inner 1 was bool up, and is int32 up"),
        ("READY = 1;", "", "value Phase 1 (READY) is gone"),
        ("READY = 1;", "DONE = 1;", "value Phase 1 was READY, and is DONE"),
        ("returns (stream Node)", "returns (Node)", "rpc Nodes.Register was"),
        ("rpc Register(Node)", "rpc Enrol(Node)", "rpc Nodes.Register (.penstock.v1.Node -> "),
    ],
)
def test_what_a_peer_from_before_would_misread_is_refused(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    before, now = table(tmp_path, BEFORE), table(tmp_path, BEFORE.replace(old, new))
    with pytest.raises(ValueError, match=re.escape(words)):
        renewed(before, now)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("repeated uint32 gpus = 2;", "reserved 2;"),
        ("READY = 1;", "reserved 1; DONE = 2;"),
        ("string id = 1;", "string id = 1; string zone = 11;"),
        ("string host = 8;", "string host = 8; string port = 12;"),
        ("service Nodes {", "message More {} service Nodes { rpc Tell(More) returns (More);"),
    ],
)
def test_what_is_added_or_reserved_is_taken_and_written_down(
    tmp_path: Path, old: str, new: str
) -> None:
    before, now = table(tmp_path, BEFORE), table(tmp_path, BEFORE.replace(old, new))
    assert parsed(renewed(before, now)) == now != before


def table(folder: Path, text: str) -> dict[str, str]:
    (folder / "a.proto").write_text(text)
    return dict(table_of(folder))
