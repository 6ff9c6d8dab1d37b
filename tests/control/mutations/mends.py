"""What keeps clients served, each with the text that takes it out again.

A mend is a piece of source that some history of the simulated cluster must miss when it is gone.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Edit:
    """One replacement in a file below `control/penstock/control`."""

    file: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Mend:
    """What holds, and the edits without which it does not."""

    says: str
    without: tuple[Edit, ...]


def _mend(says: str, file: str, old: str, new: str) -> Mend:
    return Mend(says, (Edit(file, old, new),))


MENDS = (
    _mend(
        "a replica counts for the deployment that it was made for, not for a namesake",
        "state/cluster.py",
        "(r for r in self.replicas_of(name) if r.deployment_uid == uid)",
        "(r for r in self.replicas_of(name))",
    ),
    _mend(
        "a head that hears of a later state holds still",
        "state/stamp.py",
        'if not observed:\n        return ""',
        'if observed or not observed:\n        return ""',
    ),
    _mend(
        "replicas of deployments that this store never knew are left alone",
        "state/rollout/reconcile.py",
        "if departed and departed.collected:",
        "if not departed or departed.collected:",
    ),
    _mend(
        "no snapshot is told that takes away the routes of a name that nobody deleted",
        "state/routing/withholding.py",
        "        if is_foreign(view, replica):",
        "        if False and is_foreign(view, replica):",
    ),
    _mend(
        "pings alone never take the last replica out of the routes",
        "state/fleet/serving.py",
        "r.evidence in SOUND or is_judged(deployment, r) not in sound",
        "r.evidence in SOUND",
    ),
    _mend(
        "no old replica leaves while a canary judges a revision",
        "state/rollout/arms.py",
        "of_it=False), stable, deployment.spec.replicas)",
        "of_it=False), stable, deployment.spec.replicas - judged.wanted)",
    ),
    _mend(
        "what a canary has found worse is in no route from that moment on",
        "state/rollout/placing.py",
        "return with_all_draining(view, deployment, judged.template_digest, why, now)",
        "return view",
    ),
    _mend(
        "the moment at which streams are handed over is never put off",
        "state/rollout/handing_over.py",
        "return min(known, due) if known else due",
        "return now + drain",
    ),
    _mend(
        "a head that reaches nobody replaces nothing",
        "state/rollout/replacing.py",
        "(Evidence.DOUBTED, Evidence.GONE) and _head_reaches_others(view)",
        "(Evidence.DOUBTED, Evidence.GONE)",
    ),
    _mend(
        "a lost node's replica that still answers is not lost",
        "state/fleet/health.py",
        "if node_lost and not _answers(live, replica):",
        "if node_lost:",
    ),
    _mend(
        "a replica takes another's place only once it was ready for a while",
        "state/fleet/serving.py",
        "replica.evidence is Evidence.ANSWERS and now - replica.since >= min_ready",
        "replica.evidence is Evidence.ANSWERS",
    ),
    _mend(
        "a replica stops only when every gateway routes without it, or its grace is over",
        "state/rollout/reconcile.py",
        "return all(\n        g.report",
        "return True or all(\n        g.report",
    ),
    _mend(
        "only what serves is spared when there are too many",
        "state/rollout/reconcile.py",
        "order.sort(key=lambda r: (r.id in fleet.served, -capacity.load(r.node)))",
        "order.sort(key=lambda r: -capacity.load(r.node))",
    ),
    _mend(
        "an update puts up one more before it takes one down",
        "state/rollout/replacing.py",
        "spare = len(arrived) + len(serving_old) - fleet.wanted",
        "spare = len(fleet.current) + len(serving_old) - fleet.wanted",
    ),
    _mend(
        "a crash loop is tried on another node",
        "state/rollout/reconcile.py",
        "elif replica.state is ReplicaState.BACKOFF and replica.crashes >= CRASH_LOOP:",
        "elif False:",
    ),
    _mend(
        "silence is measured by a clock that nobody sets: heartbeats",
        "managers/fleet/health.py",
        "view = swept(view, live.known, now, self._patience)",
        "view = swept(view, live.known, self._clock.now(), self._patience)",
    ),
    _mend(
        "durations are measured by a clock that nobody sets: plans",
        "managers/rollout/deployments.py",
        "now = self._clock.steady()\n\n        def plan(",
        "now = self._clock.now()\n\n        def plan(",
    ),
    _mend(
        "a clock that was set back makes nothing younger than nothing",
        "store/documents.py",
        "ReplicaState.STARTING else min(stored, now)",
        "ReplicaState.STARTING else stored",
    ),
    _mend(
        "routes are told once what is remembered was checked",
        "managers/startup.py",
        "    await health.check_remembered()\n",
        "",
    ),
    _mend(
        "plans are made once what is remembered was checked",
        "managers/startup.py",
        "    await health.check_remembered()\n",
        "    import asyncio\n\n"
        "    acting = asyncio.get_running_loop().create_task(deployments.run())\n"
        "    deployments.run = lambda: acting\n"
        "    await health.check_remembered()\n",
    ),
    _mend(
        "a head hears the nodes that it knows before it tells routes",
        "managers/startup.py",
        "    await health.await_expected(expect_nodes_for)\n",
        "",
    ),
)
