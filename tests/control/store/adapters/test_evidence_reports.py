"""Reports of evaluations: kept as they were told, thrown away once nothing names them."""

from __future__ import annotations

from pathlib import Path

from penstock.control.store.adapters.evidence_reports import EvidenceReports


def test_what_is_named_stays_and_all_else_goes_a_half_written_one_too(tmp_path: Path) -> None:
    reports = EvidenceReports(tmp_path / "evidence")
    reports.keep_only(frozenset())  # before there is any
    named, other = reports.put(b'{"a": 1}'), reports.put(b'{"b": 2}')
    (tmp_path / "evidence" / f"{other}.part").write_bytes(b"{")
    reports.keep_only(frozenset({named}))
    assert reports.get(named) == b'{"a": 1}'
    assert reports.get(other) is None
    assert [path.stem for path in (tmp_path / "evidence").iterdir()] == [named]


def test_one_whose_bytes_have_changed_is_not_told(tmp_path: Path) -> None:
    reports = EvidenceReports(tmp_path)
    digest = reports.put(b'{"passed": false}')
    (kept,) = tmp_path.iterdir()
    kept.write_bytes(b'{"passed": true}')
    assert reports.get(digest) is None
