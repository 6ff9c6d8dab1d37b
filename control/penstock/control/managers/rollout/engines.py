"""Starts engines, says when they are ready, and ends them when their time is over.

An engine is stored before anybody waits for it: a head that is restarted, and a client that goes
away, leave it as it is, until it ends by itself.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

from penstock.adapters.adapter import BadAdapterRef
from penstock.adapters.alias import Alias, BadAlias, Move, Target, check_target
from penstock.control.errors import (
    Code,
    InvalidInput,
    NotFound,
    PenstockError,
    StoreUnavailable,
    Unavailable,
)
from penstock.control.managers.changes import watching
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.rollout.specs import put_spec
from penstock.control.managers.write import Write
from penstock.control.settings import EngineLimits
from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import ReplicaState
from penstock.control.state.fleet.serving import serving
from penstock.control.state.rollout.deployment import Deployment, DeploymentName, DeploymentSpec
from penstock.control.state.rollout.engines import (
    EngineTerms,
    check_new,
    engine_named,
    id_of,
    swept,
    why_in_vain,
)
from penstock.control.state.rollout.lease import Lease, Owner
from penstock.control.state.rollout.template import USUAL_RANK
from penstock.control.state.routing.snapshot import Routes
from penstock.control.supervision.clock import Clock

log = logging.getLogger(__name__)

# An end comes without any change of the view.
LOOK_AGAIN = timedelta(seconds=1)
# For gateways to have its route, one of which may hang.
ROUTED_WITHIN = timedelta(seconds=10)


class RouteTeller(Protocol):
    """Tells gateways where to send requests."""

    async def routed_everywhere(
        self, is_routed: Callable[[Routes], bool], at_most: timedelta
    ) -> bool:
        """True once all gateways that report route by routes of which this holds; false where that
        takes longer."""


@dataclass(frozen=True, slots=True)
class WantedEngine:
    """What somebody asks for."""

    terms: EngineTerms
    # Under a name, without adapters. Raises `InvalidSpec`, `forbidden` where the caller may not.
    spec: Callable[[str], DeploymentSpec]


class EngineManager:
    """All engines. Raises `StoreUnavailable` and `HoldsStill` where nothing can be changed."""

    def __init__(
        self, cluster: ClusterStore, routes: RouteTeller, clock: Clock, limits: EngineLimits
    ) -> None:
        self._cluster = cluster
        self._routes = routes
        self._clock = clock
        self._limits = limits
        self._opened = asyncio.Event()

    def open(self) -> None:
        """What the store remembers was checked: from now on engines end."""
        self._opened.set()

    async def run(self) -> None:
        """Notes who got ready and ends whose time is over, from `open` until cancelled."""
        await self._opened.wait()
        with watching(self._cluster, _what_engines_follow_from) as changed:
            while True:
                await changed.wait(LOOK_AGAIN)
                now = self._clock.steady()
                if swept(self._cluster.view(), now)[1]:
                    await self._apply(lambda view: swept(view, self._clock.steady()))

    async def start(self, wanted: WantedEngine, write: Write, *, wait: bool) -> Deployment:
        """Makes an engine; where somebody is to `wait`, returns once it is ready and gateways have
        its route. Raises `deployment-exists`, `too-many-engines`, `Unavailable` without a node that
        could take it, and `engine-failed` where it does not get ready: then it is no more."""
        asked_at, uid = self._clock.steady(), secrets.token_hex(16)
        name, ttl_s = wanted.terms.name or id_of(uid), wanted.terms.ttl_s
        ends = asked_at + timedelta(seconds=ttl_s) if ttl_s else None
        lease = Lease(write.who, asked_at, ends)

        def step(view: ClusterView) -> ClusterView:
            spec = wanted.spec(name)
            check_new(view, name, write.who, **asdict(self._limits))
            targets = _targets(view, wanted.terms.adapters)
            spec = _with_slots(view, spec, targets)
            made = put_spec(view, spec, self._clock.now(), write.origin, uid=uid)
            engine = replace(made.deployment(name), owner=Owner.ENGINES, lease=lease)
            made = made.with_deployment(engine)
            if why := why_in_vain(made, engine):
                raise Unavailable(f"no engine is started: {why}")
            return _with_aliases(made, engine, targets, write.who, self._clock.now())

        view = await write.apply(self._cluster, step, f"start engine {name}")
        if wait and not write.dry_run:
            return await self._ready(name, uid)
        return view.deployment(name)

    async def end(self, name: str, write: Write) -> None:
        """Deletes an engine, by name or id; its replica drains and stops. Its name may be taken
        again at once. Raises `unknown-engine`."""

        def step(view: ClusterView) -> ClusterView:
            known = engine_named(view, name)
            write.check(known, f"engine {name!r}")
            return view.without_deployment(known.spec.name)

        await write.apply(self._cluster, step, f"end engine {name}")

    async def _ready(self, name: str, uid: str) -> Deployment:
        await self._until(name, uid, lambda view, known: bool(serving(view, known)))

        def is_routed(routes: Routes) -> bool:
            mine = (r for r in routes.replicas if r.deployment_uid == uid)
            return any(r.state is ReplicaState.READY for r in mine)

        if not await self._routes.routed_everywhere(is_routed, ROUTED_WITHIN):
            log.warning("not every gateway says that it knows of engine %s", name)
        # Noted beside, or it would be waited for until that is on the disk.
        return await self._until(name, uid, lambda _, known: known.lease.ready_ms > 0)

    async def _until(
        self, name: str, uid: str, comes: Callable[[ClusterView, Deployment], bool]
    ) -> Deployment:
        """Returns the engine once this is so of it. Raises `engine-failed`."""
        with watching(self._cluster, _what_engines_follow_from) as changed:
            while True:
                await changed.wait(LOOK_AGAIN)
                view = self._cluster.view()
                known = view.deployments.get(DeploymentName(name))
                if known is None or known.uid != uid:
                    raise PenstockError(
                        f"engine {name!r} was ended before it was ready", Code.ENGINE_FAILED
                    )
                if comes(view, known):
                    return known
                if why := why_in_vain(view, known):
                    await self._give_up(known, why)

    async def _give_up(self, engine: Deployment, why: str) -> None:
        """Leaves nothing of an engine behind, and raises `engine-failed`."""
        name = engine.spec.name

        def without(view: ClusterView) -> tuple[ClusterView, str]:
            known = view.deployments.get(name)
            same = known is not None and known.uid == engine.uid
            return (view.without_deployment(name) if same else view), f"end engine {name}: {why}"

        await self._apply(without)
        raise PenstockError(f"engine {name!r} did not get ready: {why}", Code.ENGINE_FAILED)

    async def _apply(self, plan: Callable[[ClusterView], tuple[ClusterView, str]]) -> None:
        """Tried again with the next look where it cannot be stored."""
        try:
            await self._cluster.apply_plan(plan)
        except StoreUnavailable as error:
            log.error("a change of engines is not stored", extra={"error": str(error)})
            await asyncio.sleep(LOOK_AGAIN.total_seconds())


def _targets(view: ClusterView, asked: Sequence[str]) -> Mapping[str, Target]:
    """What an engine is to hold, by the alias that clients say. Raises `InvalidInput`."""
    found: dict[str, Target] = {}
    for text in asked:
        deployment, colon, alias = text.partition(":")
        try:
            if colon:
                target = view.adapters.alias(deployment, alias).target
            else:
                ref = view.adapters.version(text).ref
                alias, target = ref.name, Target.of(ref)
        except (NotFound, BadAdapterRef) as error:
            raise InvalidInput(f"adapters names {text!r}: {error}") from None
        if alias in found:
            raise InvalidInput(
                f"adapters names {text!r}, and {found[alias]} under the same alias {alias!r}: an"
                " engine has one adapter of a name"
            )
        found[alias] = target
    return found


def _with_slots(
    view: ClusterView, spec: DeploymentSpec, targets: Mapping[str, Target]
) -> DeploymentSpec:
    """The spec of an engine that holds these, whatever their ranks. Raises `InvalidInput`."""
    refs = {ref for target in targets.values() for ref in target.refs}
    if not refs:
        return spec
    if spec.template.is_managed:
        raise InvalidInput(
            f"adapters names {', '.join(map(str, sorted(refs)))}: the engine"
            f" {spec.template.engine} takes none"
        )
    rank = max(view.adapters.version(str(ref)).manifest.rank for ref in refs)
    rank = rank if rank > USUAL_RANK else 0
    template = replace(spec.template, max_adapters=len(refs), max_adapter_rank=rank)
    return replace(spec, template=template)


def _with_aliases(
    view: ClusterView, engine: Deployment, targets: Mapping[str, Target], who: str, now: datetime
) -> ClusterView:
    """The view with what the engine is to hold. Raises `InvalidInput`."""
    adapters = view.adapters
    for alias, target in targets.items():
        try:
            check_target(target, adapters.versions, engine.spec.template.family)
            moves = (Move(target, now, who),)
            made = Alias(str(engine.spec.name), alias, moves, pinned=True)
        except BadAlias as error:
            raise InvalidInput(f"adapters: {error}") from None
        adapters = adapters.with_alias(made)
    return replace(view, adapters=adapters)


def _what_engines_follow_from(view: ClusterView) -> tuple[object, ...]:
    return (view.deployments, view.replicas, view.nodes)
