"""What was counted survives everything: batches that come again, and the process's end."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.control.comparer.keeping import Keeping
from penstock.control.comparer.ledger import UNREADABLE, WINDOW, Ledger
from penstock.control.comparer.records import Bounds
from penstock.control.errors import CannotStart, Code
from penstock.control.state.shadow.comparing import Order
from penstock.v1 import shadow_pb2
from tests.fakes.control_clock import ManualClock
from tests.fakes.control_errors import raises_code
from tests.fakes.shadow_batches import RULE, answer, batch, pair

ORDER = Order(RULE, "chat", "small")
NAME = "shadow.sqlite"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / NAME


@pytest.fixture
def ledger(file: Path) -> Iterator[Ledger]:
    opened = opened_at(file)
    yield opened
    opened.close()


def opened_at(file: Path) -> Ledger:
    """One that was told of a shadow."""
    ledger = Ledger(file)
    ledger.keep([ORDER], keep_others=False)
    return ledger


def test_a_sessions_first_pair_counts_and_later_ones_are_shown(ledger: Ledger) -> None:
    ledger.take(batch(1, [pair(1, session=7), pair(2, session=7, candidate=answer(""))]))
    ledger.take(batch(2, [pair(3, session=7), pair(4, session=8, again=answer())]))
    tally = ledger.tally(RULE)
    assert (tally.pairs, tally.counted, tally.again) == (4, 2, 1)


def test_a_session_is_forgotten_after_as_long_as_texts_may_be_kept(file: Path) -> None:
    clock = ManualClock()
    ledger = Ledger(file, Keeping(bounds=Bounds(longest=timedelta(days=2)), clock=clock))
    counted = []
    for number, days in enumerate((0, 1, 3)):
        clock.advance(timedelta(days=days))
        ledger.keep([ORDER], keep_others=False)
        ledger.take(batch(number + 1, [pair(number, session=7)]))
        counted.append(ledger.tally(RULE).counted)
    ledger.close()
    assert counted == [1, 1, 2]


def test_an_outcome_stands_at_the_highest_of_each_instance(ledger: Ledger) -> None:
    ledger.take(batch(1, outcomes={"paired": 3, "preempted": 1}))
    ledger.take(batch(2, outcomes={"paired": 5}))
    ledger.take(batch(1, outcomes={"paired": 2}, instance="i2"))
    assert ledger.outcomes(RULE) == {"paired": 7, "preempted": 1}


def test_a_shadow_that_is_deleted_leaves_nothing(file: Path) -> None:
    ledger = opened_at(file)
    ledger.take(batch(1, [pair(1, session=0xABCDEF)], outcomes={"paired": 1}))
    ledger.keep([Order("other", "chat", "chat")], keep_others=True)
    ledger.keep([Order("other", "chat", "chat"), ORDER], keep_others=False)
    assert ledger.tally(RULE).pairs == 1
    ledger.keep([Order("other", "chat", "chat")], keep_others=False)
    with raises_code(Code.UNKNOWN_SHADOW, match=RULE):
        ledger.report(RULE)
    assert ledger.outcomes(RULE) == {}
    ledger.take(batch(2, [pair(2)], outcomes={"paired": 2}))  # of a gateway that has yet to hear
    left = b"".join(each.read_bytes() for each in file.parent.iterdir())
    assert RULE.encode() not in left
    assert b"abcdef" not in left
    ledger.close()
    assert file.exists()


def test_a_file_in_which_nothing_is_kept_goes(file: Path) -> None:
    ledger = opened_at(file)
    ledger.keep([], keep_others=False)
    ledger.close()
    assert list(file.parent.iterdir()) == []


def test_no_text_of_a_request_or_an_answer_is_kept(file: Path) -> None:
    ledger = opened_at(file)
    secret = answer("the secret word is xyzzy")
    asked = {"messages": [{"role": "user", "content": "say xyzzy"}]}
    ledger.take(batch(1, [pair(1, primary=secret, candidate=secret, again=secret, body=asked)]))
    left = b"".join(each.read_bytes() for each in file.parent.iterdir())
    assert b"xyzzy" not in left
    ledger.close()


def test_what_breaks_a_check_is_told_of_and_the_rest_is_counted(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(message: shadow_pb2.ShadowPair) -> None:
        raise ValueError(message.request_id)

    ledger.take(batch(1, [pair(1)]))
    with monkeypatch.context() as patched:
        patched.setattr("penstock.control.comparer.ledger.pair_of", broken)
        ledger.take(batch(2, [pair(2), pair(3)]))
    ledger.take(batch(3, [pair(4)]))
    assert ledger.tally(RULE).pairs == 2
    assert ledger.outcomes(RULE) == {UNREADABLE: 2}


def test_evidence_against_other_margins_is_not_taken_for_todays(file: Path) -> None:
    ledger = opened_at(file)
    ledger.take(batch(1, [pair(1)]))
    ledger.close()
    ledger = Ledger(file)
    ledger.keep([Order(RULE, "chat", "small", margins=(("error", 0.1),))], keep_others=False)
    assert ledger.tally(RULE).pairs == 0
    ledger.close()


def test_a_check_that_nobody_makes_takes_no_part_of_the_error_rate(ledger: Ledger) -> None:
    gates = {each.check.name for each in ledger.report(RULE).findings if each.check.gate}
    assert {"error", "ttft"} <= gates
    assert not gates & {"judge", "semantic"}


def test_one_process_has_the_file_at_a_time(file: Path, ledger: Ledger) -> None:
    with pytest.raises(CannotStart, match=NAME):
        Ledger(file)


def test_a_batch_from_long_ago_was_counted(ledger: Ledger) -> None:
    ledger.take(batch(1, [pair(1)]))
    ledger.take(batch(1 + WINDOW, [pair(2)]))
    ledger.take(batch(1, [pair(3)]))
    ledger.take(batch(2, [pair(4)]))  # of which nobody heard so far
    assert ledger.tally(RULE).pairs == 3


PAIRS = st.builds(
    lambda number, session, text, status: pair(
        number, session=session, candidate=answer(text, status=status)
    ),
    st.integers(1, 9),
    st.integers(0, 4),
    st.sampled_from(["Hello there.", "", "I am sorry, but I cannot help."]),
    st.sampled_from([200, 500]),
)
BATCHES = st.lists(
    st.tuples(st.lists(PAIRS, max_size=4), st.integers(0, 9)), min_size=1, max_size=6
)


def counted(ledger: Ledger) -> object:
    return ledger.tally(RULE).as_dict(), ledger.outcomes(RULE)


@settings(max_examples=40, deadline=None)
@given(
    BATCHES,
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["again", "ends", "dies"])), max_size=8),
)
def test_batches_that_come_again_and_ends_of_the_process_change_nothing(
    told: list[tuple[list[shadow_pb2.ShadowPair], int]], accidents: list[tuple[int, str]]
) -> None:
    batches = [
        batch(number, pairs, outcomes={"paired": count})
        for number, (pairs, count) in enumerate(told, 1)
    ]
    with TemporaryDirectory() as directory:
        smooth = opened_at(Path(directory, "smooth"))
        rough = opened_at(Path(directory, "rough"))
        for number, each in enumerate(batches):
            smooth.take(each)
            rough.take(each)
            for _, what in (found for found in accidents if found[0] == number):
                if what == "again":
                    for sent in batches[: number + 1]:
                        rough.take(sent)
                elif what == "ends":
                    rough.close()
                    rough = opened_at(Path(directory, "rough"))
                else:
                    rough = after_kill(rough, Path(directory, "rough"))
                    rough.take(each)
        assert counted(rough) == counted(smooth)
        smooth.close()
        rough.close()


def after_kill(ledger: Ledger, file: Path) -> Ledger:
    """What the next process finds where this one wrote no more from this moment on."""
    names = (file.name, f"{file.name}-wal")
    left = {name: (file.parent / name).read_bytes() for name in names}
    ledger.close()
    for name, content in left.items():
        (file.parent / name).write_bytes(content)
    return opened_at(file)
