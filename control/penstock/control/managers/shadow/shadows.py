"""Shadows: made, paused, resumed, deleted."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from functools import partial

from penstock.control.errors import Code, InvalidInput, PenstockError
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.managers.write import Write
from penstock.control.state.cluster import ClusterView
from penstock.control.state.shadow.condition import Condition, condition_of
from penstock.control.state.shadow.naming import check_named
from penstock.control.state.shadow.shadows import Shadow, Shadows
from penstock.control.state.shadow.spec import ShadowSpec
from penstock.control.state.shadow.traffic import pairs_a_day
from penstock.control.state.tenancy.usage import UsageRow
from penstock.control.supervision.clock import Clock


class ShadowManager:
    """Changes the view through the cluster store, so that every gateway is told at once. All raise
    `StoreUnavailable` and `HoldsStill`, and `revision-mismatch`.
    """

    def __init__(self, cluster: ClusterStore, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock

    @property
    def shadows(self) -> Shadows:
        """All that there are."""
        return self._cluster.view().shadows

    def condition(self, shadow: Shadow) -> Condition:
        """How this one is."""
        return condition_of(self._cluster.view(), shadow)

    def pairs_a_day(self, spec: ShadowSpec, rows: Iterable[UsageRow]) -> float:
        """That these days' traffic gives at most."""
        return pairs_a_day(self._cluster.view(), spec, rows)

    async def create(self, spec: ShadowSpec, write: Write) -> Shadow:
        """Begins to repeat requests. Raises `InvalidInput`, `shadow-exists` and `conflict`."""
        made = new_shadow(spec, self._clock.now())

        def step(view: ClusterView) -> ClusterView:
            check_named(view, spec)
            return replace(view, shadows=view.shadows.with_new(made))

        await write.apply(self._cluster, step, f"create shadow {spec.name}")
        return made

    async def pause(self, name: str, write: Write) -> Shadow:
        """Repeats nothing until it is resumed; what was compared stays. Raises `unknown-shadow`."""
        paused = partial(replace, paused=True)
        return await self._change(name, write, f"pause shadow {name}", paused)

    async def resume(self, name: str, write: Write) -> Shadow:
        """Goes on where it was paused. Raises `unknown-shadow`, and `conflict` for one that has
        ended."""

        def step(shadow: Shadow) -> Shadow:
            if shadow.ended:
                raise PenstockError(
                    f"shadow {name!r} has ended ({shadow.ended}): create another one", Code.CONFLICT
                )
            return replace(shadow, paused=False)

        return await self._change(name, write, f"resume shadow {name}", step)

    async def delete(self, name: str, write: Write) -> None:
        """Ends it and forgets all that it compared. Raises `unknown-shadow`."""

        def step(view: ClusterView) -> ClusterView:
            write.check(view.shadows.shadow(name), f"shadow {name!r}")
            return replace(view, shadows=view.shadows.without(name))

        await write.apply(self._cluster, step, f"delete shadow {name}")

    async def _change(
        self, name: str, write: Write, what: str, step: Callable[[Shadow], Shadow]
    ) -> Shadow:
        def on_view(view: ClusterView) -> ClusterView:
            known = view.shadows.shadow(name)
            write.check(known, f"shadow {name!r}")
            return replace(view, shadows=view.shadows.having(step(known)))

        return (await write.apply(self._cluster, on_view, what)).shadows.shadow(name)


def new_shadow(spec: ShadowSpec, now: datetime) -> Shadow:
    """One that has compared nothing. Raises `InvalidInput`."""
    if spec.until.at and spec.until.at <= now:
        raise InvalidInput(f"until.at is {spec.until.at.isoformat()}, which is past")
    return Shadow(spec, secrets.token_hex(16), secrets.randbits(63), now)
