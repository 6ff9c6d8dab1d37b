"""Where a replica finds room: nodes that may take it, and free accelerators on them.

Pure, but for the plan's own placements, which take what they were given.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection
from datetime import datetime
from itertools import islice

from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import (
    Device,
    Node,
    NodeId,
    NodeIntent,
    NodeState,
    Replica,
    ReplicaState,
)
from penstock.control.state.fleet.serving import is_current
from penstock.control.state.rollout.actions import Place, Wake
from penstock.control.state.rollout.deployment import Deployment
from penstock.control.state.rollout.engine_args import runs_model_code
from penstock.control.state.rollout.template import Template

# What vLLM takes of a device's memory where gpu_memory_utilization is not set.
UTILIZATION = 0.9


def devices_needed(template: Template) -> int:
    """Accelerators that one replica spans, on a node that has any."""
    if template.engine != "vllm":
        return 0
    return _count(template, "tensor_parallel_size") * _count(template, "pipeline_parallel_size")


class Capacity:
    """The nodes of a view, as one plan fills them."""

    def __init__(self, view: ClusterView) -> None:
        self._open = sorted((n for n in view.nodes.values() if takes_more(n)), key=lambda n: n.id)
        self._load: Counter[NodeId] = Counter()
        self._held: defaultdict[NodeId, set[str]] = defaultdict(set)
        self._asleep: list[Replica] = []
        for replica in view.replicas.values():
            if replica.state is ReplicaState.ASLEEP:  # it has what nobody else has when it wakes
                self._asleep.append(replica)
            elif replica.state is not ReplicaState.LOST:
                self._load[replica.node] += 1
                self._held[replica.node] |= {*replica.devices, *replica.status.devices}

    def load(self, node_id: NodeId) -> int:
        """Replicas on a node, this plan's own placements included."""
        return self._load[node_id]

    def find(
        self, deployment: Deployment, avoid: Collection[NodeId] = ()
    ) -> tuple[NodeId, tuple[str, ...]] | None:
        """The least loaded node with room, and devices there; those to avoid come last."""
        template = deployment.target.template
        fits = [n for n in self._fitting(template) if self._free(n, template) is not None]
        if not fits:
            return None
        node = min(fits, key=lambda n: (n.id in avoid, self._load[n.id], n.id))
        return node.id, self._free(node, template) or ()

    def one_more(
        self, deployment: Deployment, avoid: Collection[NodeId] = ()
    ) -> Place | Wake | None:
        """The next replica of it, which takes its room: one that sleeps on devices that are free,
        else one that finds room."""
        sleepers = [r for r in self._asleep if is_current(deployment, r) and self._may_wake(r)]
        if sleepers:
            replica = max(sleepers, key=lambda r: (r.since, r.id))
            self._asleep.remove(replica)
            self.take(replica.node, replica.devices)
            return Wake(replica.id)
        if found := self.find(deployment, avoid):
            self.take(*found)
            return Place(deployment.spec.name, *found)
        return None

    def in_the_way(self, deployment: Deployment, before: datetime) -> Replica | None:
        """Of those that sleep since before that moment the one that has longest, where devices are
        given to nobody and only what is in their memory leaves no room."""
        mine = deployment.target.template
        nodes = [n.id for n in self._fitting(mine) if self.would_fit(deployment, n.id, ())]
        there = (r for r in self._asleep if r.node in nodes and r.since <= before and r.devices)
        return min(there, key=lambda r: (r.since, r.id), default=None)

    def _may_wake(self, replica: Replica) -> bool:
        """Whether the devices that its process sees are there, and given to nobody. What memory of
        them others use is not asked: some of it is its own."""
        node = next((n for n in self._open if n.id == replica.node), None)
        usable = {d.uuid for d in node.facts.resources.usable} if node else set()
        devices = {*replica.devices, *replica.status.devices}
        return bool(node) and devices <= usable - self._held[replica.node]

    def take(self, node_id: NodeId, devices: Collection[str]) -> None:
        """A replica was placed there."""
        self._load[node_id] += 1
        self._held[node_id] |= set(devices)

    def is_full(self, deployment: Deployment) -> bool:
        """Whether there are nodes for it, but no free devices on any."""
        fitting = self._fitting(deployment.target.template)
        return bool(fitting) and self.find(deployment) is None

    def would_fit(self, deployment: Deployment, node_id: NodeId, freed: Collection[str]) -> bool:
        """Whether a replica found room on this node if these devices were free."""
        template = deployment.target.template
        for node in self._fitting(template):
            if node.id == node_id:
                free = {d.uuid for d in node.facts.resources.usable} - self._held[node_id]
                return len(free | set(freed)) >= devices_needed(template)
        return False

    def has_unheld(self, deployment: Deployment) -> bool:
        """Whether devices for it are given to nobody, whatever is in their memory."""
        fitting = self._fitting(deployment.target.template)
        return any(self.would_fit(deployment, node.id, ()) for node in fitting)

    def _fitting(self, template: Template) -> list[Node]:
        """Nodes that could hold it if they were empty. Where some have accelerators for it, only
        those: on the others it would run on CPUs."""
        code = runs_model_code(template)
        nodes = [n for n in self._open if n.facts.allows_model_code or not code]
        needed = devices_needed(template)
        if not needed:
            return nodes
        with_devices = [n for n in nodes if len(n.facts.resources.usable) >= needed]
        return with_devices or [n for n in nodes if not n.facts.resources.devices]

    def _free(self, node: Node, template: Template) -> tuple[str, ...] | None:
        """Devices for one replica; None where too few are free, empty where none are needed."""
        devices = node.facts.resources.usable
        needed = devices_needed(template) if node.facts.resources.devices else 0
        held, share = self._held[node.id], _utilization(template)
        free = (d.uuid for d in devices if d.uuid not in held and _has_memory(d, share))
        chosen = tuple(islice(free, needed))
        return chosen if len(chosen) == needed else None


def takes_more(node: Node) -> bool:
    """Whether replicas may be placed on the node at all."""
    return node.state is NodeState.READY and node.intent is NodeIntent.SERVING and not node.draining


def _has_memory(device: Device, share: float) -> bool:
    if not device.memory_bytes:
        return True
    return device.memory_used_bytes <= device.memory_bytes * (1 - share)


def _utilization(template: Template) -> float:
    try:
        return min(max(float(_setting(template, "gpu_memory_utilization")), 0.0), 1.0)
    except ValueError:
        return UTILIZATION


def _count(template: Template, name: str) -> int:
    text = _setting(template, name)
    return max(1, int(text)) if text.isascii() and text.isdigit() else 1


def _setting(template: Template, name: str) -> str:
    """An engine argument, spelled with dashes or underscores; empty: not set."""
    found = [value for key, value in template.engine_args if key.replace("-", "_") == name]
    return found[-1] if found else ""
