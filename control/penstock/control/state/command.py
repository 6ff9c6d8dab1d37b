"""Whether this head may act: who contradicted it, and what a take-over would change.

A head whose store is empty, foreign or restored from a backup hears it from nodes and gateways:
they tell the newest stamp that they have accepted. It then holds still, changes nothing and says
so, until an operator has looked at the difference and takes over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.serving import is_foreign
from penstock.control.state.rollout.deployment import Departed
from penstock.control.state.stamp import START_ONCE, Stamp, contradiction

ADVICE = f"to go on with this store, {START_ONCE}"
STRANGERS_ADVICE = (
    "if it is to belong to this head, start a node agent with a --data-dir of its own and a gateway"
    f" anew; if this store is the wrong one or lost what it knew, {START_ONCE}"
)


def observed_stamp(view: ClusterView, own: Stamp, who: str, observed: Stamp) -> ClusterView:
    """The view after `who` told its stamp: held still from the first contradiction on."""
    why = "" if view.held else contradiction(own, observed)
    return replace(view, held=f"{who} {why}: {ADVICE}") if why else view


@dataclass(frozen=True, slots=True)
class TakeOver:
    """What a take-over makes of the store's identity, and what it does not know."""

    stamp: Stamp
    differences: tuple[str, ...]


def take_over(view: ClusterView, own: Stamp, observed: Collection[Stamp]) -> TakeOver:
    """The identity that everybody who was heard will accept, and the difference to show.

    Where nobody knows this store's cluster, the one that most know is taken up.
    """
    ids = Counter(stamp.cluster_id for stamp in observed if stamp)
    cluster_id = own.cluster_id
    if ids and cluster_id not in ids:
        cluster_id = min(ids, key=lambda name: (-ids[name], name))
    epochs = (stamp.epoch for stamp in observed if stamp.cluster_id == cluster_id)
    epoch = max([own.epoch, *epochs]) + 1
    stamp = Stamp(cluster_id, epoch, own.revision)
    return TakeOver(stamp, tuple(_differences(view)))


def taken_over(view: ClusterView) -> ClusterView:
    """In command again. What the store does not know stays shown and is left alone, and no longer
    keeps routes from being told."""
    for replica in view.replicas.values():
        if is_foreign(view, replica):
            gone = Departed(replica.deployment_uid, replica.deployment, collected=False)
            view = view.with_departed(gone)
    return replace(view, held="")


def _differences(view: ClusterView) -> Iterator[str]:
    for _, replica in sorted(view.replicas.items()):
        if is_foreign(view, replica):
            yield (
                f"replica {replica.id} on node {replica.node} is of deployment "
                f"{replica.deployment!r} (uid {replica.deployment_uid or 'unknown'}), which this "
                "store does not know: it runs on, and nothing is sent to it"
            )
    for _, deployment in sorted(view.deployments.items()):
        if not any(True for _ in view.replicas_for(deployment)):
            yield f"deployment {deployment.spec.name!r} has no replica that a node knows"
