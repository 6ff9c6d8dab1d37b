"""What must never be in a cluster, whatever happens to machines, messages, clocks and stores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from penstock.control.state.cluster import ClusterView
from penstock.control.state.fleet.replica import ReplicaId, ReplicaState
from penstock.control.state.fleet.serving import serving
from penstock.control.state.rollout.deployment import Deployment, DeploymentName
from penstock.control.state.rollout.reconcile import MOST_SLEEPERS
from tests.fakes.control_values import SECOND, spec
from tests.fakes.simulated_cluster import SimulatedCluster
from tests.fakes.simulated_head import DEADLINES
from tests.fakes.simulated_machines import FLAKY, SimulatedGateway

# After machines broke, for so long fewer may serve: until the head has noticed and replaced.
RECOVERY_STEPS = 20


class Laws:
    """Watches one cluster: each decision and each stop as it is made, the rest at each step."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self._calm = RECOVERY_STEPS  # steps since something broke
        self._served: dict[tuple[str, str], set[ReplicaId]] = {}
        self._given_up: set[ReplicaId] = set()  # they ran when nothing was wanted of them
        cluster.after_decisions = self._each_decision_is_sound
        cluster.after_apply = self._what_nobody_wants_may_go
        cluster.before_stop = self._nothing_stops_that_is_sent_to

    def run(self, steps: int) -> None:
        """So many seconds pass."""
        for _ in range(steps):
            self._cluster.step()
            self.check()

    def broken(self) -> None:
        """Something broke just now: that fewer serve for a while is not the head's doing."""
        self._calm = 0

    def check(self) -> None:
        """What holds at each moment."""
        self._calm += 1
        self._weights_are_those_of_the_deployment()
        self._who_was_served_is_served_on()
        self._nobody_is_told_of_one_that_sleeps()
        self._who_drains_hands_over()

    def _what_nobody_wants_may_go(self) -> None:
        """However soon more is wanted again: the head may have let them go in between."""
        view = self._cluster.view
        for replica in view.replicas.values():
            wanted = view.deployments.get(replica.deployment)
            if not (wanted and wanted.uid == replica.deployment_uid and wanted.spec.replicas):
                self._given_up.add(replica.id)

    def _weights_are_those_of_the_deployment(self) -> None:
        """No gateway is told to send a request to a replica that has loaded another deployment's
        weights: whatever it checks itself."""
        cluster = self._cluster
        for gateway in cluster.gateways.values():
            uids = {d.name: d.uid for d in gateway.routes.deployments}
            for route in gateway.routes.replicas:
                replica_id = ReplicaId(route.id)
                if cluster.holder(replica_id) and route.state is ReplicaState.READY:
                    models = cluster.models_of[uids[route.deployment]]
                    assert cluster.model(replica_id) in models

    def _nobody_is_told_of_one_that_sleeps(self) -> None:
        """What the head has seen asleep stands in no route of its newest snapshot; who has it sends
        it nothing. Nor are there more of them than may be."""
        view, asleep = self._cluster.view, ReplicaState.ASLEEP
        sleepers = {r.id for r in view.replicas.values() if r.state is asleep}
        assert not sleepers & view.published.ready
        of = [view.replicas[each].deployment for each in sleepers]
        assert all(of.count(deployment) <= MOST_SLEEPERS for deployment in of)
        for name, gateway in self._cluster.gateways.items():
            if gateway.connected > RECOVERY_STEPS and not gateway.lag and self._is_calm():
                sent = gateway.sends_to().keys() & sleepers
                assert not sent, f"{name} sends to {sent}, which sleep"

    def _who_was_served_is_served_on(self) -> None:
        """A gateway that could send requests to a sound replica always can to one, until the
        deployment is deleted or scaled to nothing. A head that reaches no replica knows too little
        to tell the sound from those that end soon."""
        for name, gateway in self._cluster.gateways.items():
            for deployment in gateway.routes.deployments:
                wanted = self._cluster.view.deployments.get(deployment.name)
                sound = self._sound(gateway, deployment.name)
                key = (name, deployment.uid)
                asked = wanted and wanted.uid == deployment.uid and wanted.spec.replicas
                served = self._served.get(key, set()) - self._given_up
                if asked and served and self._is_calm():
                    assert sound, f"{name} served {deployment.name} and no longer does"
                self._served[key] = sound

    def _is_calm(self) -> bool:
        return self._calm > RECOVERY_STEPS and not self._cluster.cut_off

    def _sound(self, gateway: SimulatedGateway, name: DeploymentName) -> set[ReplicaId]:
        """Those of a deployment that answer and will not end by themselves soon."""
        of = {r.id for r in gateway.routes.replicas if r.deployment == name}
        found = {i for i in self._cluster.served_by(gateway) if i in of}
        return {i for i in found if self._cluster.model(i) != FLAKY}

    def _each_decision_is_sound(self, old: ClusterView, new: ClusterView) -> None:
        self._no_decision_costs_capacity(old, new)
        self._no_hand_over_is_put_off(old, new)

    def _who_drains_hands_over(self) -> None:
        """The moment is fixed as soon as the head looks at its replicas again."""
        view, soon = self._cluster.view, 2 * SECOND
        if not self._cluster.head_is_up or view.held or not self._is_calm():
            return
        for replica in view.replicas.values():
            if replica.state is ReplicaState.DRAINING and self._cluster.now - replica.since > soon:
                assert replica.hand_over_at or not view.owner(replica), (
                    f"{replica.id} has no moment"
                )

    def _no_hand_over_is_put_off(self, old: ClusterView, new: ClusterView) -> None:
        for replica in new.replicas.values():
            before = old.replicas.get(replica.id)
            if before and before.state is replica.state is ReplicaState.DRAINING:
                if before.hand_over_at:
                    assert replica.hand_over_at
                    assert replica.hand_over_at <= before.hand_over_at

    def _no_decision_costs_capacity(self, old: ClusterView, new: ClusterView) -> None:
        for deployment in old.deployments.values():
            if deployment.spec.name in new.deployments:
                before = {r.id for r in serving(old, deployment)}
                after = {r.id for r in serving(new, deployment)}
                new_spec = new.deployments[deployment.spec.name].spec
                may_lack = new_spec.rollout.update.max_unavailable
                assert len(after) >= min(deployment.spec.replicas - may_lack, len(before))
                self._what_is_judged_takes_no_place(deployment, old, new)

    def _what_is_judged_takes_no_place(
        self, deployment: Deployment, old: ClusterView, new: ClusterView
    ) -> None:
        """While a canary judges a revision, whatever becomes of it, as many as were wanted serve
        of the one before."""
        if deployment.judged is None or new.deployments[deployment.spec.name].paused:
            return
        digest = deployment.judged.template_digest
        before = [r for r in serving(old, deployment) if r.template_digest != digest]
        now = new.deployments[deployment.spec.name]
        after = [r for r in serving(new, now) if r.template_digest != digest]
        assert len(after) >= min(deployment.spec.replicas, len(before))

    def _nothing_stops_that_is_sent_to(self, replica_id: ReplicaId) -> None:
        """Unless the gateways had their time; one that was not reached is not waited for."""
        cluster = self._cluster
        if cluster.now - cluster.view.replicas[replica_id].since >= DEADLINES.leave_grace:
            return
        for name, gateway in cluster.gateways.items():
            if gateway.connected > 1:
                assert replica_id not in gateway.sends_to(), f"{name} sends to {replica_id}"


@contextmanager
def serving_cluster(
    *, replicas: int = 2, nodes: int = 2, gateways: int = 2
) -> Iterator[tuple[SimulatedCluster, Laws]]:
    """Two nodes, and one deployment that is as wanted."""
    with SimulatedCluster(nodes, gateways) as cluster:
        laws = Laws(cluster)
        cluster.step()  # both are there before anything is placed
        cluster.put(spec(replicas=replicas, model="a"))
        cluster.settle()
        laws.check()
        yield cluster, laws
