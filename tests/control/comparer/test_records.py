"""Prompts and answers are kept where that was asked for, redacted, within bounds; and not else."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from penstock.control.comparer.keeping import Keeping
from penstock.control.comparer.ledger import Ledger
from penstock.control.comparer.records import Bounds
from penstock.control.comparer.vault import Vault
from penstock.control.state.recording.recorded import RecordingOrder
from penstock.control.state.shadow.comparing import Order
from penstock.control.state.shadow.spec import Record
from penstock.evals.comparison.redaction import rules
from penstock.evals.comparison.report import as_dict
from penstock.v1 import shadow_pb2
from tests.fakes.control_clock import ManualClock
from tests.fakes.shadow_batches import RULE, answer, batch, pair

PROMPT = "Tell ada@example.org about the marmalade"
SECRET = b"marmalade"
NO_ANSWER = answer("out of order", status=500)


def ordered(record: Record, *, ended: bool = False) -> Order:
    return Order(RULE, "chat", "small", ended=ended, record=record)


def asked(number: int, prompt: str = PROMPT, session: int | None = None) -> shadow_pb2.ShadowPair:
    """A pair whose candidate has failed."""
    body = {"messages": [{"role": "user", "content": prompt}]}
    return pair(number, session=session, body=body, candidate=NO_ANSWER)


def opened(
    tmp_path: Path, record: Record = Record.REDACTED, keeping: Keeping | None = None
) -> Ledger:
    ledger = Ledger(tmp_path / "shadow.sqlite", keeping)
    ledger.keep([ordered(record)], keep_others=False)
    return ledger


def told(ledger: Ledger) -> dict[str, object]:
    """What a report says of texts."""
    return dict(as_dict(ledger.report(RULE, with_texts=True))["records"])


def worst(ledger: Ledger) -> list[dict[str, str]]:
    return told(ledger)["worst"]  # type: ignore[return-value]


def on_disk(tmp_path: Path) -> bytes:
    return b"".join(each.read_bytes() for each in tmp_path.rglob("*") if each.is_file())


def test_nothing_is_kept_where_nothing_is_asked_for(tmp_path: Path) -> None:
    ledger = opened(tmp_path, Record.NONE)
    ledger.take(batch(1, [asked(1)]))
    assert as_dict(ledger.report(RULE, with_texts=True))["records"] is None
    assert SECRET not in on_disk(tmp_path)
    ledger.close()


def test_a_pair_is_redacted_before_anything_is_written(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    ledger.take(batch(1, [asked(1)]))
    (first, *_) = worst(ledger)
    assert first["gate"] == "error"
    assert first["asked"] == "Tell [e-mail address] about the marmalade"
    assert (first["primary"], first["id"]) == ("Hello there.", "req-1")
    assert "out of order" in first["candidate"]
    assert b"ada@example.org" not in on_disk(tmp_path)
    ledger.close()


def test_full_is_as_it_was(tmp_path: Path) -> None:
    ledger = opened(tmp_path, Record.FULL)
    ledger.take(batch(1, [asked(1)]))
    assert worst(ledger)[0]["asked"] == PROMPT
    ledger.close()


def test_who_may_not_read_texts_is_told_none(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    ledger.take(batch(1, [asked(1)]))
    assert as_dict(ledger.report(RULE))["records"] is None
    ledger.close()


def test_what_does_not_count_is_not_kept_and_what_is_not_worse_is_not_shown(
    tmp_path: Path,
) -> None:
    ledger = opened(tmp_path)
    ledger.take(batch(1, [asked(1, session=7), asked(2, session=7), pair(3)]))
    assert told(ledger)["pairs"] == 2
    assert {each["id"] for each in worst(ledger)} == {"req-1"}
    ledger.close()


def test_a_shadow_that_is_deleted_leaves_nothing_of_its_texts(tmp_path: Path) -> None:
    ledger = opened(tmp_path, Record.FULL)
    ledger.take(batch(1, [asked(number) for number in range(50)]))
    other = Order("other", "chat", "chat")
    assert SECRET in on_disk(tmp_path)
    ledger.keep([other], keep_others=False)
    assert SECRET not in on_disk(tmp_path)
    ledger.close()
    assert SECRET not in on_disk(tmp_path)


def test_what_is_too_old_goes(tmp_path: Path) -> None:
    clock = ManualClock()
    keeping = Keeping(bounds=Bounds(longest=timedelta(days=2)), clock=clock)
    ledger = opened(tmp_path, Record.FULL, keeping)
    ledger.take(batch(1, [asked(1)]))
    clock.advance(timedelta(days=1))
    ledger.take(batch(2, [asked(2, "something else")]))
    clock.advance(timedelta(days=1.5))
    ledger.keep([ordered(Record.FULL)], keep_others=False)
    assert [each["asked"] for each in worst(ledger)] == ["something else"]
    assert SECRET not in on_disk(tmp_path)
    assert ledger.tally(RULE).counted == 2
    ledger.close()


def test_where_there_is_too_much_the_oldest_go(tmp_path: Path) -> None:
    ledger = opened(tmp_path, Record.FULL, Keeping(bounds=Bounds(most_bytes=10_000)))
    for number in range(100):
        ledger.take(batch(number + 1, [asked(number, "x" * 1000)]))
    assert 5 <= int(str(told(ledger)["pairs"])) <= 9
    last = {each["id"] for each in worst(ledger)}
    assert last <= {f"req-{number}" for number in range(90, 100)}
    ledger.close()


def test_sessions_of_a_shadow_that_has_ended_are_forgotten_and_nothing_counts_any_more(
    tmp_path: Path,
) -> None:
    ledger = opened(tmp_path)
    ledger.take(batch(1, [asked(1, session=0xABCDEF)]))
    ledger.keep([ordered(Record.REDACTED, ended=True)], keep_others=False)
    ledger.take(batch(2, [asked(2, session=0xABCDEF)]))
    assert (ledger.tally(RULE).pairs, told(ledger)["pairs"]) == (1, 1)
    ledger.close()
    assert b"abcdef" not in on_disk(tmp_path)


def test_what_is_too_large_counts_and_is_not_kept(tmp_path: Path) -> None:
    ledger = opened(tmp_path)
    long = pair(2, primary=answer("x" * (1 << 20)))
    ledger.take(batch(1, [asked(1, "x" * (1 << 20)), long]))
    assert (ledger.tally(RULE).counted, told(ledger)["pairs"]) == (2, 0)
    assert told(ledger)["left_out"] == {"too large": 2}
    ledger.close()


# ---- under a key


def keyed(tmp_path: Path, key: bytes) -> Keeping:
    file = tmp_path / "keys" / f"{key[:1].hex()}.key"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(key)
    file.chmod(0o600)
    return Keeping(vault=Vault(file))


def test_under_a_key_nothing_can_be_read_on_disk(tmp_path: Path) -> None:
    ledger = opened(tmp_path, Record.FULL, keyed(tmp_path, b"k" * 32))
    ledger.take(batch(1, [asked(1)]))
    assert SECRET not in on_disk(tmp_path)
    assert worst(ledger)[0]["asked"] == PROMPT
    ledger.close()


def test_under_another_key_old_texts_are_left_out_and_counted_and_none_is_lost(
    tmp_path: Path,
) -> None:
    first, second = (keyed(tmp_path, key * 32) for key in (b"k", b"l"))
    ledger = opened(tmp_path, Record.FULL, first)
    ledger.take(batch(1, [asked(1)]))
    ledger.close()
    ledger = opened(tmp_path, Record.FULL, second)
    ledger.take(batch(2, [asked(2, "something else")]))
    assert [each["asked"] for each in worst(ledger)] == ["something else"]
    assert (told(ledger)["pairs"], told(ledger)["unreadable"]) == (2, 1)
    ledger.close()
    ledger = opened(tmp_path, Record.FULL, first)
    assert [each["asked"] for each in worst(ledger)] == [PROMPT]
    ledger.close()


@pytest.mark.parametrize("key", [b"", b"too short", b"!" * 44])
def test_with_a_key_that_cannot_be_used_nothing_is_kept_and_all_is_counted(
    tmp_path: Path, key: bytes
) -> None:
    file = tmp_path / "record.key"
    if key:
        file.write_bytes(key)
        file.chmod(0o600)
    ledger = opened(tmp_path, Record.FULL, Keeping(vault=Vault(file)))
    ledger.take(batch(1, [asked(1)]))
    assert ledger.tally(RULE).counted == 1
    found = told(ledger)
    assert (found["pairs"], found["left_out"]) == (0, {"no key": 1})
    assert str(found["trouble"]).startswith(f"--record-key-file: {file} ")
    assert SECRET not in on_disk(tmp_path)
    ledger.close()


# ---- recordings

RECORDING = RecordingOrder("rec-1", Record.REDACTED, 1_700_000_000_000, 3, 1 << 20)


def request(number: int, prompt: str = PROMPT, **more: object) -> shadow_pb2.ShadowPair:
    """A request that is recorded, a second after the one before."""
    made = pair(number, rule="rec-1", body={"messages": [{"role": "user", "content": prompt}]})
    made.ClearField("candidate")
    made.at_ms = RECORDING.began_ms + 1000 * number
    for name, value in more.items():
        setattr(made, name, value)
    return made


def lines(ledger: Ledger) -> list[dict[str, object]]:
    part = ledger.recordings.part("rec-1", 0)
    text = ledger.recordings.head("rec-1") + b"".join(part.texts if part else ())
    return [json.loads(line) for line in text.splitlines()]


def test_a_recording_has_what_was_asked_when_and_how_it_was_answered(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "shadow.sqlite")
    ledger.keep([], [RECORDING], keep_others=False)
    ledger.take(batch(1, [request(1)]))
    header, first = lines(ledger)
    assert (header["format"], header["began"]) == (
        "penstock-recording",
        "2023-11-14T22:13:20+00:00",
    )
    assert "e-mail address" in header["redacted"]  # type: ignore[operator]
    assert first["body"] == {
        "messages": [{"role": "user", "content": "Tell [e-mail address] about the marmalade"}]
    }
    assert (first["id"], first["at"], first["path"]) == ("req-1", 1.0, "/v1/chat/completions")
    assert first["session"] == "0000000000000001"
    assert first["answered"] == {
        "status": 200,
        "finish_reason": "stop",
        "usage": {"prompt_tokens": 5, "completion_tokens": 2},
        "total_ms": 1000.0,
    }
    ledger.close()


def test_a_recording_has_no_more_than_it_may_and_says_so(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "shadow.sqlite")
    ledger.keep([], [RECORDING], keep_others=False)
    ledger.take(batch(1, [request(number) for number in range(5)]))
    standing = ledger.recordings.standing("rec-1")
    assert (standing.requests, standing.kept, standing.left_out) == (3, 3, {"over": 2})
    ledger.close()


def test_a_name_of_a_request_that_says_too_much_is_not_kept(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "shadow.sqlite")
    ledger.keep([], [RECORDING], keep_others=False)
    names = ["call +49 170 1234567", "192.168.17.4"]
    ledger.take(batch(1, [request(n, request_id=name) for n, name in enumerate(names)]))
    assert len(lines(ledger)) == 3
    assert not any(name.encode() in on_disk(tmp_path) for name in names)
    ledger.close()


def test_a_client_that_left_has_no_answer_in_the_recording(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "shadow.sqlite")
    ledger.keep([], [RECORDING], keep_others=False)
    left = request(1)
    left.marks.append("client_left")
    ledger.take(batch(1, [left]))
    assert "answered" not in lines(ledger)[1]
    ledger.close()


def test_a_recording_that_is_deleted_leaves_nothing(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "shadow.sqlite")
    ledger.keep([], [RECORDING], keep_others=False)
    ledger.take(batch(1, [request(1)]))
    assert SECRET in on_disk(tmp_path)
    ledger.keep([Order(RULE, "chat", "small")], keep_others=False)
    assert SECRET not in on_disk(tmp_path)
    ledger.close()


def test_what_is_no_json_is_left_out_and_counted(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "shadow.sqlite")
    ledger.keep([], [RECORDING], keep_others=False)
    ledger.take(batch(1, [request(1, body=b"[1"), request(2, body=b"[1]")]))
    assert ledger.recordings.standing("rec-1").left_out == {"unreadable": 2}
    ledger.close()


def test_the_file_names_the_rules_that_all_of_it_was_held_to(tmp_path: Path) -> None:
    def begun(*keys: str) -> Ledger:
        ledger = Ledger(tmp_path / "shadow.sqlite", Keeping(held=rules(keys=keys)))
        ledger.keep([], [RECORDING], keep_others=False)
        return ledger

    def named(ledger: Ledger) -> set[str]:
        found = {str(each) for each in lines(ledger)[0]["redacted"]}  # type: ignore[attr-defined]
        return found & {"key a", "key b", "IBAN"}

    ledger = begun("a")
    assert named(ledger) == {"key a", "IBAN"}
    ledger.take(batch(1, [request(1)]))
    ledger.close()
    ledger = begun("a", "b")
    assert named(ledger) == {"key a", "IBAN"}
    ledger.close()
    ledger = begun("b")
    assert named(ledger) == {"IBAN"}
    ledger.close()
