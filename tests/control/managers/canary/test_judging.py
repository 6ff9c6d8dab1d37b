"""What is decided of canaries is carried out: stored with what it was made from, or not at all."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, NamedTuple

import pytest

from penstock.adapters.alias import Alias, Move, Target
from penstock.adapters.promotion import PromotionPolicy
from penstock.adapters.version import VersionState
from penstock.control.errors import Code, PenstockError, StoreUnavailable, Unavailable
from penstock.control.managers.canary.canaries import CanaryManager
from penstock.control.managers.canary.judging import CanaryJudge
from penstock.control.managers.canary.records import CanaryRecords
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.write import Write
from penstock.control.state.adapters.registry import AdapterRegistry
from penstock.control.state.canary.canary import Canary, CanaryState
from penstock.control.state.canary.counts import Counts
from penstock.control.state.canary.spec import CanarySpec, Step, parsed_target
from penstock.control.state.cluster import ClusterView
from penstock.control.state.rollout.deployment import DeploymentName
from penstock.control.state.rollout.revision import RevisionState, served
from penstock.control.state.shadow.shadows import Compared, Shadow
from penstock.control.state.shadow.spec import Candidate, Primary, ShadowSpec
from tests.adapters.examples import ref, version
from tests.fakes.canary_values import arm, gateway
from tests.fakes.control_clock import ManualClock
from tests.fakes.control_store import MemoryStore
from tests.fakes.control_values import NOON, contradict, deployment, in_service, replica, spec

ALICE = Write("alice")
MANY = 20_000  # sessions, of which none broke: equal by any guard
TEMPLATE = replace(spec().template, max_adapters=2)


class Said(NamedTuple):
    json: str


@dataclass
class Kept:
    """Reports that are kept, and a comparer that may be away."""

    reports: list[Mapping[str, Any]] = field(default_factory=list)
    away: bool = False

    @asynccontextmanager
    async def kept(self, report: Mapping[str, Any] | None) -> AsyncIterator[str]:
        assert report is not None
        self.reports.append(json.loads(json.dumps(report)))
        yield f"{len(self.reports):064}"

    async def account(self, uid: str, pairs_a_day: float, *, with_texts: bool = False) -> Said:
        if self.away:
            raise Unavailable("the comparer starts")
        return Said(json.dumps({"of": uid, "verdict": "equal"}))


class World:
    """A head's canaries, over a store in memory."""

    def __init__(self) -> None:
        self.clock, self.store, self.kept = ManualClock(), MemoryStore(), Kept()
        self.cluster = ClusterStore(self.store, self.clock)
        self.records = CanaryRecords(self.cluster, self.kept, self.kept, self.clock)
        self.judge = CanaryJudge(self.cluster, self.records, self.clock)
        self.manager = CanaryManager(self.cluster, self.clock)

    @property
    def view(self) -> ClusterView:
        return self.cluster.view()

    @property
    def canary(self) -> Canary:
        return self.view.canaries.canary("try")

    async def version(self) -> int:
        return (await self.store.load()).version

    async def begins(self, target: str, candidate: str, shadow: str = "") -> None:
        await self.cluster.restore()
        await self.cluster.observe(_cluster, "test")
        steps = (Step(100, 10, 0), Step(1000, 10, 0))
        said = CanarySpec("try", parsed_target(target), candidate, steps, shadow=shadow)
        await self.manager.create(said, ALICE)

    async def told(self, bad: int = 0) -> None:
        """A gateway tells much of the step that it has."""
        step = self.canary.shared_step
        counts = Counts(arm(MANY), arm(MANY, bad))
        told = gateway("g0", counts, step=step)
        assert told.report
        mine = replace(told.report.canaries[0], uid=self.canary.uid)
        told = replace(told, report=replace(told.report, canaries=(mine,)))
        await self.cluster.observe(lambda view: view.with_gateway(told), "test")

    async def second(self, bad: int = 0) -> None:
        self.clock.advance(timedelta(seconds=1))
        if self.canary.shared_step:
            await self.told(bad)
        await self.judge.judge()
        await self.records.keep()

    async def goes_to_the_end(self) -> None:
        for _ in range(6):
            await self.second()


def _cluster(view: ClusterView) -> ClusterView:
    registry = AdapterRegistry()
    for name in ("a@1", "a@2"):
        registry = registry.with_version(version(name, name, family=TEMPLATE.family))
    move = Move(Target.of(ref("a@1")), NOON, "alice")
    view = replace(view, adapters=registry.with_alias(Alias("mini", "sea", (move,))))
    for name, model in (("mini", "penstock-mini"), ("next", "b")):
        of = replace(spec(name=name), template=replace(TEMPLATE, model=model))
        known = in_service(deployment(of, uid=name))
        view = view.with_deployment(known)
        ready = replica(f"r-{name}", uid=name, digest=known.template_digest, deployment=name)
        status = replace(ready.status, adapters=("a@1", "a@2"))
        view = view.with_replica(replace(ready, status=status))
    made = Shadow(
        ShadowSpec("ab", Primary("mini", "sea"), Candidate("mini", "a@2"), 100), "s1", 1, NOON
    )
    shadows = replace(view.shadows.having(made), compared=Compared(verdicts={"s1": "equal"}))
    return replace(view, shadows=shadows)


async def test_an_alias_moves_with_its_evidence_in_one_transaction() -> None:
    world = World()
    await world.begins("mini:sea", "a@2", "ab")
    await world.goes_to_the_end()
    assert (world.canary.state, world.canary.why) == (CanaryState.PROMOTED, "mini:sea is a@2")
    alias = world.view.adapters.alias("mini", "sea")
    assert (str(alias.target), alias.moves[-1].by, len(alias.moves)) == ("a@2", "canary try", 2)
    assert world.view.adapters.version("a@2").state is VersionState.LIVE
    ((told),) = world.view.adapters.evidence_of(ref("a@2"))
    assert (told.evidence.kind, told.evidence.passed, told.report) == ("canary", True, f"{1:064}")
    assert told.evidence.against == ref("a@1")
    ((report),) = world.kept.reports
    assert (report["shadow"], report["counts"]["candidate"]["sessions"]) == (
        {"of": "s1", "verdict": "equal"},
        MANY,
    )
    assert [passed["permille"] for passed in report["canary"]["passed"]] == [100, 1000]
    (entry,) = [e for e in await world.store.audit(99) if e.key.kind == "alias" and e.before]
    assert entry.what == "canary try moves mini:sea to a@2"
    assert alias.undone(NOON, "bob").target == Target.of(ref("a@1"))


async def test_a_version_that_the_policy_asks_more_of_stays_what_it_is() -> None:
    world = World()
    await world.begins("mini:sea", "a@2", "ab")
    policy = PromotionPolicy(frozenset({VersionState.LIVE}))
    await world.cluster.observe(
        lambda view: replace(view, adapters=view.adapters.with_policy(policy)), "test"
    )
    world.kept.away = True
    await world.goes_to_the_end()
    assert world.canary.state is CanaryState.PROMOTED
    assert world.view.adapters.version("a@2").state is VersionState.CANDIDATE
    assert world.kept.reports[0]["shadow"] is None


async def test_what_was_counted_is_stored_with_what_was_decided_and_has_no_trail() -> None:
    world = World()
    await world.begins("mini", "next")
    await world.second()
    before = await world.version()
    await world.second()
    assert (world.canary.step, await world.version()) == (2, before + 1)
    kinds = [entry.key.kind for entry in await world.store.audit(99)]
    assert "canary" in kinds
    assert "canary_counts" not in kinds
    head = ClusterStore(world.store, world.clock)
    await head.restore()
    words = replace(world.canary, why="")  # found anew each second
    assert head.view().canaries == world.view.canaries.having(words)


async def test_a_second_of_which_nothing_is_told_is_not_stored() -> None:
    world = World()
    await world.begins("mini", "next")
    await world.judge.judge()
    await world.judge.judge()
    before = await world.version()
    for _ in range(3):
        await world.judge.judge()
    assert await world.version() == before
    assert world.canary.why.startswith("no gateway reports; the candidate arm has 0 of 10")


async def test_nothing_is_decided_while_the_head_holds_still_or_the_store_is_full() -> None:
    world = World()
    await world.begins("mini", "next")
    await world.second()
    world.store.failing = True
    await world.told()
    with pytest.raises(StoreUnavailable):
        await world.judge.judge()
    assert world.canary.step == 1
    world.store.failing = False
    await contradict(world.cluster)
    await world.judge.judge()
    assert world.canary.step == 1


async def test_a_deployment_gets_the_candidates_template_and_is_promoted_once_that_serves() -> None:
    world = World()
    await world.begins("mini", "next")
    await world.goes_to_the_end()
    mini = world.view.deployments[DeploymentName("mini")]
    assert (mini.spec.template.model, mini.revision.number) == ("b", 2)
    assert (mini.revision.by, mini.revision.reason) == ("canary try", "promotes next")
    assert (world.canary.promoting, world.canary.permille) == (True, 1000)
    assert world.canary.why == "revision 2 of mini is rolled out"
    done = replace(mini, revisions=served(mini.revisions))
    await world.cluster.observe(lambda view: view.with_deployment(done), "test")
    await world.second()
    assert (world.canary.state, world.canary.permille) == (CanaryState.PROMOTED, 0)


@pytest.mark.parametrize("how", ["abort", "worse"])
async def test_what_ends_in_the_midst_of_its_promotion_takes_the_rollout_back(how: str) -> None:
    world = World()
    await world.begins("mini", "next")
    await world.second()
    await world.manager.promote("try", ALICE)
    assert world.view.deployments[DeploymentName("mini")].revision.number == 2
    if how == "abort":
        await world.manager.abort("try", Write("alice", reason="too slow"))
    else:
        await world.second(bad=MANY // 2)
    states = {r.number: r for r in world.view.deployments[DeploymentName("mini")].revisions}
    assert states[2].state is RevisionState.FAILED
    words = "aborted: alice: too slow" if how == "abort" else "rolled back: errors worse: 50 %"
    assert states[2].cause.startswith(f"canary try {words}")
    assert world.canary.permille == 0


async def test_operators_pause_resume_abort_and_forget_one() -> None:
    world = World()
    await world.begins("mini", "next")
    await world.second()
    assert (await world.manager.pause("try", ALICE)).state is CanaryState.PAUSED
    await world.second()
    assert (world.canary.step, world.canary.permille) == (1, 100)
    with pytest.raises(PenstockError, match="is paused: abort or promote it first") as why:
        await world.manager.delete("try", ALICE)
    assert why.value.code is Code.CANARY_OWNS
    assert (await world.manager.resume("try", ALICE)).state is CanaryState.RUNNING
    await world.second()
    assert world.canary.step == 2
    account = world.manager.account("try")
    assert (account.counts.candidate.sessions, account.replicas_ready) == (MANY, 1)
    assert [finding.guard for finding in account.findings] == ["errors", "finish"]
    aborted = await world.manager.abort("try", ALICE)
    assert (aborted.state, aborted.why) == (CanaryState.ABORTED, "aborted by alice")
    assert world.manager.account("try").counts.candidate.sessions == MANY
    for order in (world.manager.pause, world.manager.promote, world.manager.abort):
        with pytest.raises(PenstockError, match="is aborted and cannot be"):
            await order("try", ALICE)
    await world.manager.delete("try", ALICE)
    with pytest.raises(PenstockError, match="no canary 'try'"):
        world.manager.account("try")


async def test_an_alias_promoted_before_its_steps_are_passed_moves_without_evidence() -> None:
    world = World()
    await world.begins("mini:sea", "a@2")
    await world.second()
    await world.manager.promote("try", ALICE)
    await world.second()
    assert str(world.view.adapters.alias("mini", "sea").target) == "a@2"
    assert world.canary.state is CanaryState.PROMOTED
    assert not world.view.adapters.evidence_of(ref("a@2"))


async def test_a_version_that_was_found_worse_keeps_that_as_evidence() -> None:
    world = World()
    await world.begins("mini:sea", "a@2")
    await world.second()
    await world.second(bad=MANY // 2)
    assert str(world.view.adapters.alias("mini", "sea").target) == "a@1"
    ((told),) = world.view.adapters.evidence_of(ref("a@2"))
    assert (told.evidence.kind, told.evidence.passed) == ("canary", False)
    await world.second()
    assert len(world.kept.reports) == 1


async def test_an_alias_that_cannot_move_holds_its_promotion_and_says_why() -> None:
    world = World()
    await world.begins("mini:sea", "a@2")
    await world.second()

    def forgets(view: ClusterView) -> ClusterView:
        alias = view.adapters.alias("mini", "sea")
        return replace(view, adapters=view.adapters.without_alias(alias))

    await world.cluster.observe(forgets, "a document that cannot be read any more")
    await world.second()
    assert (world.canary.state, world.canary.permille) == (CanaryState.HELD, 100)
    assert world.canary.why == "there is no alias mini:sea any more"
