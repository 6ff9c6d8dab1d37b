"""Aliases of deployments for adapter versions: moved at once, undone in one step."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta

from penstock.adapters.adapter import AdapterRef, BadAdapterRef
from penstock.adapters.alias import Alias, BadAlias, Move, Target, check_target
from penstock.control.errors import InvalidInput
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.routing.routes import RouteManager
from penstock.control.managers.write import Write
from penstock.control.state.adapters.bases import check_taken
from penstock.control.state.cluster import ClusterView
from penstock.control.state.routing.snapshot import Routes
from penstock.control.supervision.clock import Clock

log = logging.getLogger(__name__)

PATIENCE = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class AliasSpec:
    """What an alias is to be."""

    weights: Mapping[str, int]  # by name@version; one alone has everybody
    preload: int | None = None  # replicas that load it before anybody asks; none: all
    pinned: bool = False


class AliasManager:
    """Changes aliases in the view, so that every gateway is told at once, and answers when all
    of them route by it; at the latest after `PATIENCE`, since one may hang.

    All raise `StoreUnavailable`, `HoldsStill` and `revision-mismatch`; then nothing is changed.
    """

    def __init__(self, cluster: ClusterStore, routes: RouteManager, clock: Clock) -> None:
        self._cluster = cluster
        self._routes = routes
        self._clock = clock

    @property
    def view(self) -> ClusterView:
        """What there is."""
        return self._cluster.view()

    async def put(
        self, deployment: str, name: str, spec: AliasSpec, write: Write
    ) -> tuple[Alias, bool]:
        """Makes an alias, or moves it; the alias, and whether it is new. Raises
        `unknown-deployment` and `InvalidInput`."""
        target = target_of(spec.weights)
        is_new = False

        def step(view: ClusterView) -> Alias:
            nonlocal is_new
            known = view.adapters.aliases.get(f"{deployment}:{name}")
            is_new = known is None
            made = moved(known, deployment, name, spec, Move(target, self._clock.now(), write.who))
            check_named(view, made)
            write.check(known, f"alias {deployment}:{name}")
            return made

        made = await self._change(step, write, f"{deployment}:{name} is {target}")
        return made, is_new

    async def undo(self, deployment: str, name: str, write: Write) -> Alias:
        """Takes the last move back. Raises `unknown-alias`, and `InvalidInput` where it never
        moved, or what it named then may be named no longer."""

        def step(view: ClusterView) -> Alias:
            alias = view.adapters.alias(deployment, name)
            write.check(alias, f"alias {deployment}:{name}")
            try:
                undone = alias.undone(self._clock.now(), write.who)
            except BadAlias as error:
                raise InvalidInput(str(error)) from None
            check_named(view, undone)
            return undone

        return await self._change(step, write, f"undo the move of {deployment}:{name}")

    async def delete(self, deployment: str, name: str, write: Write) -> None:
        """Nobody can say it any more. Raises `unknown-alias`."""

        def step(view: ClusterView) -> ClusterView:
            alias = view.adapters.alias(deployment, name)
            write.check(alias, f"alias {deployment}:{name}")
            return replace(view, adapters=view.adapters.without_alias(alias))

        await write.apply(self._cluster, step, f"delete alias {deployment}:{name}")
        if not write.dry_run:
            await self._spread(deployment, name, None)

    def alias(self, deployment: str, name: str) -> Alias:
        """One that there is. Raises `unknown-deployment` and `unknown-alias`."""
        self.view.deployment(deployment)
        return self.view.adapters.alias(deployment, name)

    async def _change(self, step: Callable[[ClusterView], Alias], write: Write, what: str) -> Alias:
        changed: list[Alias] = []

        def on_view(view: ClusterView) -> ClusterView:
            changed.append(step(view))
            return replace(view, adapters=view.adapters.with_alias(changed[-1]))

        await write.apply(self._cluster, on_view, what)
        if not write.dry_run:
            await self._spread(changed[-1].deployment, changed[-1].name, changed[-1].target)
        return changed[-1]

    async def _spread(self, deployment: str, name: str, target: Target | None) -> None:
        """Who has the answer finds the alias moved, whichever gateway is asked."""

        def is_routed(routes: Routes) -> bool:
            mine = (dict(d.aliases) for d in routes.deployments if d.name == deployment)
            return all(aliases.get(name) == target for aliases in mine)

        if not await self._routes.routed_everywhere(is_routed, PATIENCE):
            log.warning("not every gateway says that it knows of %s:%s", deployment, name)


def moved(known: Alias | None, deployment: str, name: str, spec: AliasSpec, move: Move) -> Alias:
    """An alias as it is to be, which may name nothing that there is. Raises `InvalidInput`."""
    there = known.moved(move) if known else _made(deployment, name, move)
    return replace(there, preload=spec.preload, pinned=spec.pinned)


def check_named(view: ClusterView, alias: Alias) -> None:
    """Raises `InvalidInput` where the alias names what is not there, or what its deployment cannot
    load, and `unknown-deployment`."""
    found = view.deployment(alias.deployment)
    try:
        check_target(alias.target, view.adapters.versions, found.spec.template.family)
    except BadAlias as error:
        raise InvalidInput(str(error)) from None
    check_taken(view, found, alias.target)


def target_of(weights: Mapping[str, int]) -> Target:
    """What an alias is asked to name. Raises `InvalidInput`."""
    try:
        parsed = {AdapterRef.parse(ref): weight for ref, weight in weights.items()}
        if parsed and not any(parsed.values()):
            refs = ", ".join(map(str, parsed))
            raise InvalidInput(f"it gives {refs} no share: one weight at least is above 0")
        return Target.split(parsed)
    except (BadAdapterRef, BadAlias) as error:
        raise InvalidInput(str(error)) from None


def _made(deployment: str, name: str, move: Move) -> Alias:
    try:
        return Alias(deployment, name, (move,))
    except BadAlias as error:
        raise InvalidInput(str(error)) from None
