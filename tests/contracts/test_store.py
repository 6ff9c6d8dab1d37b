"""What every Store promises, on every implementation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from pathlib import Path

import pytest

from penstock.control.errors import Code
from penstock.control.state.events import (
    KEPT_FOR,
    MOST_KEPT,
    REPEATS_WITHIN,
    Event,
    EventKind,
    Reason,
    Wanted,
)
from penstock.control.state.tenancy.spend import Spend, SpendRow
from penstock.control.state.tenancy.usage import MOST, Counts, Holder, Reading, UsageKey, UsageRow
from penstock.control.store.sqlite import SqliteStore
from penstock.control.store.store import Author, Change, Key, Store
from tests.fakes.control_errors import raises_code
from tests.fakes.control_store import MemoryStore
from tests.fakes.control_values import NOON, SECOND

A, B = Key("deployment", "a"), Key("deployment", "b")
ADMIN = Author("admin", "test")


@pytest.fixture(params=["sqlite", "memory"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    open_store: dict[str, Callable[[], Awaitable[Store]]] = {
        "sqlite": lambda: SqliteStore.open(tmp_path / "penstock.db"),
        "memory": lambda: asyncio.sleep(0, MemoryStore()),
    }
    opened = await open_store[request.param]()
    yield opened
    await opened.close()


async def test_an_empty_store_is_at_version_0(store: Store) -> None:
    contents = await store.load()
    assert (contents.version, contents.documents) == (0, {})


async def test_what_was_written_is_read_back_with_its_version(store: Store) -> None:
    assert await store.apply([Change(A, {"x": 1, "text": "ü"})], ADMIN, NOON) == 1
    assert await store.apply([Change(B, {"y": [1, None]})], ADMIN, NOON) == 2
    contents = await store.load()
    assert contents.version == 2
    assert {k: (s.version, s.document) for k, s in contents.documents.items()} == {
        A: (1, {"x": 1, "text": "ü"}),
        B: (2, {"y": [1, None]}),
    }


async def test_a_deleted_document_is_gone(store: Store) -> None:
    await store.apply([Change(A, {})], ADMIN, NOON)
    await store.apply([Change(A, None)], ADMIN, NOON)
    assert (await store.load()).documents == {}


async def test_a_writer_that_read_an_older_version_is_refused(store: Store) -> None:
    await store.apply([Change(A, {"n": 1})], ADMIN, NOON)
    await store.apply([Change(A, {"n": 2}, expected_version=1)], ADMIN, NOON)
    with raises_code(Code.REVISION_MISMATCH, match="at version 2"):
        await store.apply([Change(A, {"n": 3}, expected_version=1)], ADMIN, NOON)
    with raises_code(Code.REVISION_MISMATCH):
        await store.apply([Change(A, {"n": 3}, expected_version=0)], ADMIN, NOON)
    assert (await store.load()).documents[A].document == {"n": 2}


async def test_a_transaction_is_all_or_nothing(store: Store) -> None:
    changes = [Change(A, {}), Change(B, {}, expected_version=7)]
    with raises_code(Code.REVISION_MISMATCH):
        await store.apply(changes, ADMIN, NOON)
    contents = await store.load()
    assert (contents.version, contents.documents) == (0, {})
    assert await store.audit(10) == []


async def test_older_audit_entries_are_asked_for_by_version(store: Store) -> None:
    for name in ("a", "b", "c"):
        await store.apply([Change(Key("x", name), {})], Author("me", name), NOON)
    newest, *_ = await store.audit(1)
    older = await store.audit(10, before=newest.version)
    assert [entry.what for entry in older] == ["b", "a"]
    assert await store.audit(10, before=0) == []
    assert len(await store.audit(10, before=2**64)) == 3


async def test_one_authors_audit_entries_are_left_out_before_they_are_counted(store: Store) -> None:
    for who in ("me", "others", "me", "others"):
        await store.apply([Change(A, {})], Author(who, "try it"), NOON)
    found = await store.audit(2, without="others")
    assert [(entry.who, entry.version) for entry in found] == [("me", 3), ("me", 1)]


async def test_the_audit_trail_says_who_what_when_before_and_after(store: Store) -> None:
    await store.apply([Change(A, {"n": 1})], Author("admin", "create a"), NOON)
    await store.apply([Change(A, {"n": 2})], Author("head", "change a"), NOON + SECOND)
    await store.apply([Change(A, None)], Author("admin", "delete a"), NOON + SECOND)
    trail = await store.audit(2)
    assert [(e.who, e.what, e.at, e.key, e.before, e.after, e.version) for e in trail] == [
        ("admin", "delete a", NOON + SECOND, A, {"n": 2}, None, 3),
        ("head", "change a", NOON + SECOND, A, {"n": 1}, {"n": 2}, 2),
    ]


async def test_concurrent_writers_each_get_a_version_of_their_own(store: Store) -> None:
    writes = [store.apply([Change(A, {"n": n})], ADMIN, NOON) for n in range(20)]
    assert sorted(await asyncio.gather(*writes)) == list(range(1, 21))


TODAY = NOON.date()
TOMORROW = TODAY + timedelta(days=1)
ACME = UsageKey("acme", "key_1", "mini", "")
NOBODY = UsageKey("", "", "mini", "pirate@1")


async def test_usage_is_what_counts_grew_by_on_the_day_of_the_reading(store: Store) -> None:
    await store.record([Reading(TODAY, "i", ACME, Counts(1, 0, 10, 5, 0))])
    await store.record(
        [
            Reading(TOMORROW, "i", ACME, Counts(3, 1, 10, 9, 2)),
            Reading(TODAY, "j", ACME, Counts(2, 0, 4, 4, 0)),
            Reading(TODAY, "i", NOBODY, Counts(1)),
        ]
    )
    assert await store.usage(TODAY, TOMORROW) == [
        UsageRow(TODAY, NOBODY, Counts(1)),
        UsageRow(TODAY, ACME, Counts(3, 0, 14, 9, 0)),
        UsageRow(TOMORROW, ACME, Counts(2, 1, 0, 4, 2)),
    ]
    assert await store.usage(TOMORROW, TOMORROW, "") == []
    assert [row.counts for row in await store.usage(TODAY, TODAY, "acme")] == [
        Counts(3, 0, 14, 9, 0)
    ]
    assert dict(await store.sums_of(TODAY)) == {
        Holder("", ""): Counts(1),
        Holder("acme", "key_1"): Counts(3, 0, 14, 9, 0),
    }


async def test_what_a_deployment_spent_is_the_sum_of_what_all_used_of_it(store: Store) -> None:
    other = UsageKey("acme", "key_1", "other", "")
    await store.record(
        [
            Reading(TODAY, "i", ACME, Counts(1, 0, 10, 5, 0, 100)),
            Reading(TODAY, "j", ACME, Counts(2, 0, 4, 4, 0, 1)),
            Reading(TODAY, "i", NOBODY, Counts(1, cost_nanousd=20)),
            Reading(TODAY, "i", other, Counts(1)),
            Reading(TOMORROW, "i", ACME, Counts(2, 0, 10, 6, 0, 102)),
        ]
    )
    mini = [
        SpendRow(TODAY, "mini", Spend(4, 14, 9, 121)),
        SpendRow(TOMORROW, "mini", Spend(1, 0, 1, 2)),
    ]
    assert await store.spent(TODAY, TOMORROW, "mini") == mini
    assert await store.spent(TODAY, TODAY) == [mini[0], SpendRow(TODAY, "other", Spend(1))]
    assert await store.spent(TODAY, TOMORROW, "none") == []


async def test_a_reading_that_is_recorded_again_or_is_older_changes_nothing(store: Store) -> None:
    first, second = (Reading(TODAY, "i", ACME, Counts(n, 0, 2 * n, 0, 0)) for n in (1, 2))
    for readings in ([first], [second], [second], [first], [second, first], []):
        await store.record(readings)
    assert await store.usage(TODAY, TODAY) == [UsageRow(TODAY, ACME, Counts(2, 0, 4, 0, 0))]


async def test_a_count_that_cannot_be_believed_stands_in_nobodys_way(store: Store) -> None:
    for n in range(3):
        await store.record([Reading(TODAY, f"i{n}", ACME, Counts(2**64 - 1))])
    (row,) = await store.usage(TODAY, TODAY)
    assert row.counts.requests >= MOST


async def test_usage_is_no_transaction_of_the_documents(store: Store) -> None:
    await store.apply([Change(A, {})], ADMIN, NOON)
    await store.record([Reading(TODAY, "i", ACME, Counts(1))])
    assert (await store.load()).version == 1
    assert len(await store.audit(10)) == 1


def event(name: str = "a", text: str = "is ready", seconds: float = 0) -> Event:
    at = NOON + seconds * SECOND
    return Event(EventKind.REPLICA, name, Reason.REPLICA_READY, text, at, "mini")


async def ids(store: Store, wanted: Wanted = Wanted()) -> list[int]:  # noqa: B008  # a value
    return [each.id for each in (await store.events(wanted)).events]


async def test_events_are_read_back_in_their_order_and_by_what_is_asked(store: Store) -> None:
    node = Event(EventKind.NODE, "n1", Reason.NODE_LOST, "node n1 is lost", NOON + 9 * SECOND)
    await store.keep_events([event("a"), event("b", seconds=5), node])
    kept = (await store.events(Wanted())).events
    assert [(each.id, each.event, each.count, each.first_at) for each in kept] == [
        (1, event("a"), 1, NOON),
        (2, event("b", seconds=5), 1, NOON + 5 * SECOND),
        (3, node, 1, NOON + 9 * SECOND),
    ]
    for wanted, found in (
        (Wanted(kind="node"), [3]),
        (Wanted(name="b"), [2]),
        (Wanted(deployment="mini"), [1, 2]),
        (Wanted(reason="NodeLost"), [3]),
        (Wanted(type="warning"), [3]),
        (Wanted(kind="replica", since=NOON + SECOND), [2]),
        (Wanted(kind="node", name="a"), []),
    ):
        assert await ids(store, wanted) == found, wanted


async def test_events_are_told_in_pages_and_the_newest_alone(store: Store) -> None:
    await store.keep_events([event(name) for name in "abcde"])
    page = await store.events(Wanted(), after=1, most=2)
    assert ([each.id for each in page.events], page.newest, page.forgotten) == ([2, 3], 5, 0)
    page = await store.events(Wanted(), most=2, last=True)
    assert [each.id for each in page.events] == [4, 5]
    assert (await store.events(Wanted(), most=0)).events == ()


async def test_what_is_said_again_within_an_hour_counts_and_has_an_id_of_its_own(
    store: Store,
) -> None:
    await store.keep_events([event("a"), event("b")])
    await store.keep_events([event("a", seconds=60)])
    again = REPEATS_WITHIN.total_seconds() + 30
    await store.keep_events([event("a", seconds=again), event("b", seconds=again)])
    await store.keep_events([event("a", "is ready, otherwise", again)])
    kept = (await store.events(Wanted())).events
    assert [(each.id, each.event.name, each.count) for each in kept] == [
        (2, "b", 1),
        (4, "a", 3),
        (5, "b", 1),
        (6, "a", 1),
    ]
    assert (kept[1].first_at, kept[1].event.at) == (NOON, NOON + again * SECOND)


async def test_events_are_forgotten_after_a_week_which_is_known_of(store: Store) -> None:
    await store.keep_events([event("a"), event("b", seconds=60)])
    await store.keep_events([event("c", seconds=KEPT_FOR.total_seconds() + 30)])
    page = await store.events(Wanted())
    assert ([each.id for each in page.events], page.forgotten) == ([2, 3], 1)


async def test_so_many_events_are_kept_and_no_more(store: Store) -> None:
    await store.keep_events([event(str(number)) for number in range(MOST_KEPT + 3)])
    page = await store.events(Wanted())
    assert (len(page.events), page.events[0].id, page.forgotten) == (MOST_KEPT, 4, 3)


async def test_events_are_no_transaction_of_the_documents(store: Store) -> None:
    await store.keep_events([event()])
    assert (await store.load()).version == 0
    assert await store.audit(10) == []
