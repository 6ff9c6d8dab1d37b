"""Engines: deployments of one replica that somebody asked for, and that end by themselves. Pure.

In all else they are deployments: routes, limits, usage, logs and events know no difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from penstock.control.declared.fields import setting
from penstock.control.errors import Code, NotFound, PenstockError
from penstock.control.state.cluster import ClusterView, some_of
from penstock.control.state.fleet.replica import LIVE, ReplicaState
from penstock.control.state.fleet.serving import serving
from penstock.control.state.rollout.capacity import Capacity
from penstock.control.state.rollout.deployment import Deployment, DeploymentName
from penstock.control.state.rollout.lease import Owner
from penstock.control.state.rollout.status import status_of
from penstock.control.state.rollout.template import MOST_ADAPTERS

USUAL_TTL_S: Final = 3600
LONGEST_TTL_S: Final = 30 * 24 * 3600
# A process that ended by itself is started once more for whoever waits, and no oftener.
ENDS_IN_VAIN: Final = 2
_ID_DIGITS: Final = 12


@dataclass(frozen=True, slots=True)
class EngineTerms:
    """What is asked of an engine beside what it is made of."""

    name: str = setting('what clients say as "model"; empty: its id', "", examples=("scratch",))
    ttl_s: int = setting(
        "{unit} from this request on, after which it ends; 0: never, for a token of role admin",
        USUAL_TTL_S,
        ge=0,
        le=LONGEST_TTL_S,
        unit="seconds",
    )
    adapters: tuple[str, ...] = setting(
        "that it holds from the start, each as `name@version` or `deployment:alias`; clients say"
        " `engine:name`, or `engine:alias`",
        (),
        most=MOST_ADAPTERS,
        examples=(["pirate@1"],),
    )


def id_of(uid: str) -> str:
    """What an engine is called whose deployment has this uid: a name that deployments may have."""
    return f"eng-{uid[:_ID_DIGITS]}"


def engines_of(view: ClusterView) -> Mapping[str, Deployment]:
    """All that there are, by their names."""
    return {str(n): d for n, d in view.deployments.items() if d.owner is Owner.ENGINES}


def engine_named(view: ClusterView, name: str) -> Deployment:
    """The engine of this name or id. Raises `unknown-engine`."""
    known = engines_of(view)
    by_id = (each for each in known.values() if id_of(each.uid) == name)
    if found := known.get(name) or next(by_id, None):
        return found
    raise NotFound(f"no engine {name!r}: there are {some_of(known)}", Code.UNKNOWN_ENGINE)


def check_new(view: ClusterView, name: str, who: str, *, per_token: int, total: int) -> None:
    """Raises `deployment-exists` for a name that is taken, `too-many-engines` where there are as
    many `per_token`, or in `total`, as may be."""
    known = engines_of(view)
    if DeploymentName(name) in view.deployments:
        kind = "an engine" if name in known else "a deployment"
        raise PenstockError(f"{name!r} is {kind}: take another name", Code.DEPLOYMENT_EXISTS)
    if any(id_of(each.uid) == name for each in known.values()):
        raise PenstockError(
            f"{name!r} is the id of an engine: take another name", Code.DEPLOYMENT_EXISTS
        )
    mine = [n for n, each in known.items() if each.lease.by == who]
    for found, most, whose, flag in (
        (mine, per_token, f" of token {who!r}", "--max-engines-per-token"),
        (known, total, "", "--max-engines"),
    ):
        if len(found) >= most:
            raise PenstockError(
                f"there are {len(found)} engines{whose}, and may be {most}: end one"
                f" ({some_of(found)}), wait for the end of one, or give the head another {flag}",
                Code.TOO_MANY_ENGINES,
            )


def check_of_people(known: Deployment | None) -> None:
    """Raises `conflict` where a change would make another thing of an engine."""
    if known is not None and known.owner is Owner.ENGINES:
        raise PenstockError(
            f"{known.spec.name!r} is an engine, which has one replica of what it was started as:"
            f" start another, or end it with `penstock engines stop {known.spec.name}`",
            Code.CONFLICT,
        )


def swept(view: ClusterView, now: datetime) -> tuple[ClusterView, str]:
    """The view without engines whose time is over, in which those that got ready say how long that
    took; and what was done, for the audit trail."""
    done = []
    for name, each in sorted(engines_of(view).items()):
        lease = each.lease
        if lease.expires_at is not None and now >= lease.expires_at:
            view = view.without_deployment(each.spec.name)
            done.append(f"end engine {name}: its time is over")
        elif not lease.ready_ms and lease.asked_at is not None and serving(view, each):
            took = (now - lease.asked_at) // timedelta(milliseconds=1)
            lease = replace(lease, ready_ms=max(took, 1))
            view = view.with_deployment(replace(each, lease=lease))
            done.append(f"engine {name} is ready")
    return view, "; ".join(done)


def why_in_vain(view: ClusterView, engine: Deployment) -> str:
    """Why nobody need wait until it is ready; empty: it may come to that."""
    live = [r for r in view.replicas_for(engine) if r.state in LIVE]
    for each in live:
        if each.state is ReplicaState.FAILED or each.crashes >= ENDS_IN_VAIN:
            return f"{each.id}: {each.status.last_error or f'exit code {each.status.exit_code}'}"
    if engine.trouble or live or _is_placeable(view, engine):
        return engine.trouble
    return status_of(view, engine).message


def _is_placeable(view: ClusterView, engine: Deployment) -> bool:
    """Whether a node takes it now, or once what drains has ended."""
    drains = any(r.state is ReplicaState.DRAINING for r in view.replicas.values())
    return drains or Capacity(view).find(engine) is not None
