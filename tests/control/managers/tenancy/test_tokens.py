"""Tokens outlive the head, and the file in the data directory is always good for one."""

from __future__ import annotations

from datetime import timedelta

import pytest

from penstock.control.errors import HoldsStill
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.tenancy.tokens import TokenManager, new_secret
from penstock.control.managers.write import Write
from penstock.control.state.tenancy.tokens import Role
from penstock.control.store.store import Author, Change, Key
from tests.fakes.control_clock import ManualClock
from tests.fakes.control_store import MemoryStore
from tests.fakes.control_values import NOON, contradict


async def started(
    store: MemoryStore, secret: str, *, new: bool = False, clock: ManualClock | None = None
) -> TokenManager:
    clock = clock or ManualClock()
    tokens = TokenManager(ClusterStore(store, clock), clock)
    await tokens.begin(secret, new=new)
    return tokens


async def test_the_token_of_the_first_start_is_of_role_admin_and_stays() -> None:
    store = MemoryStore()
    first = await started(store, "pst_a", new=True)
    again = await started(store, "pst_a")
    assert [t.name for t in first.all()] == ["admin"]
    assert again.all() == first.all()
    found = again.holder("pst_a")
    assert found
    assert found.role is Role.ADMIN


async def test_a_file_that_was_taken_away_gives_another_token_and_revokes_the_old() -> None:
    store = MemoryStore()
    await started(store, "pst_a", new=True)
    tokens = await started(store, "pst_b", new=True)
    assert tokens.holder("pst_a") is None
    assert tokens.holder("pst_b")


async def test_a_store_that_was_replaced_takes_the_file_that_is_there() -> None:
    tokens = await started(MemoryStore(), "pst_a")
    assert tokens.holder("pst_a")


async def test_a_revoked_token_stays_revoked_though_its_file_is_there() -> None:
    store = MemoryStore()
    tokens = await started(store, "pst_a", new=True)
    _, other = await tokens.create("bob", Role.ADMIN, Write("test"))
    (first,) = [token for token in tokens.all() if token.name == "admin"]
    await tokens.revoke(first.id, Write("bob"))
    again = await started(store, "pst_a")
    assert again.holder("pst_a") is None
    assert again.holder(other)


async def test_a_full_disk_does_not_keep_the_operator_out() -> None:
    store = MemoryStore()
    store.failing = True
    tokens = await started(store, "pst_a", new=True)
    assert tokens.holder("pst_a")
    store.failing = False
    again = await started(store, "pst_a")
    assert again.holder("pst_a")


async def test_use_is_noted_by_the_hour() -> None:
    store, clock = MemoryStore(), ManualClock()
    tokens = await started(store, "pst_a", new=True, clock=clock)
    for _ in range(3):
        found = tokens.holder("pst_a")
        assert found
        await tokens.used(found)
    assert len(await store.audit(10)) == 2  # made, and used once
    assert tokens.all()[0].last_used_at == clock.now()
    clock.advance(timedelta(hours=1))
    await tokens.used(tokens.all()[0])
    assert len(await store.audit(10)) == 3


async def test_a_token_that_cannot_be_read_keeps_no_head_from_starting() -> None:
    store = MemoryStore()
    await store.apply([Change(Key("token", "x"), {"name": "odd"})], Author("t", "t"), NOON)
    tokens = await started(store, "pst_a", new=True)
    assert [t.name for t in tokens.all()] == ["admin"]


def test_no_two_secrets_are_alike_and_each_says_what_it_is() -> None:
    made = {new_secret() for _ in range(100)}
    assert len(made) == 100
    assert all(secret.startswith("pst_") and len(secret) >= 47 for secret in made)


async def test_a_head_that_holds_still_writes_no_token_and_keeps_nobody_out() -> None:
    store, clock = MemoryStore(), ManualClock()
    cluster = ClusterStore(store, clock)
    await cluster.restore()
    tokens = TokenManager(cluster, clock)
    await tokens.begin("pst_a", new=True)
    eve, _ = await tokens.create("eve", Role.VIEWER, Write("test"))
    await contradict(cluster)
    version = (await store.load()).version
    await tokens.used(eve)
    with pytest.raises(HoldsStill, match="--take-over"):
        await tokens.create("bob", Role.ADMIN, Write("test"))
    with pytest.raises(HoldsStill, match="--take-over"):
        await tokens.revoke(eve.id, Write("bob"))
    assert sorted(t.name for t in tokens.all()) == ["admin", "eve"]
    await tokens.begin("pst_b", new=True)  # the operator took the file away and started it again
    assert tokens.holder("pst_b")
    assert (await store.load()).version == version


async def test_a_written_token_counts_among_the_revisions_that_others_are_told_of() -> None:
    store, clock = MemoryStore(), ManualClock()
    cluster = ClusterStore(store, clock)
    await cluster.restore()
    await TokenManager(cluster, clock).begin("pst_a", new=True)
    assert cluster.stamp.revision == (await store.load()).version
