"""How far a deployment is on its way to answering. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

from penstock.control.admin.rollout.models import ReplicaModel

# Starts that end before the replica was ever ready; then it is not worth waiting any longer.
ENOUGH_FAILURES = 3
SHORT_ENOUGH = 100  # characters of a log line beside the progress


def loading_phase(replicas: Sequence[ReplicaModel]) -> str:
    """One line on what the replicas do."""
    if not replicas:
        return "waiting for the node agent"
    ready = sum(replica.state == "ready" for replica in replicas)
    if ready:
        return f"{ready} of {len(replicas)} replicas ready"
    states = {replica.state for replica in replicas}
    if "backoff" in states:
        return "starting again"
    if states <= {"pending"} or not any(replica.address for replica in replicas):
        return "starting"
    return "loading the model"


def failure(replicas: Sequence[ReplicaModel], since: datetime) -> ReplicaModel | None:
    """A replica that shows that this will not come to anything; None while there is hope.

    States older than `since` are left from an earlier run.
    """
    for replica in replicas:
        given_up = replica.state == "failed"
        loops = replica.state == "backoff" and replica.restarts >= ENOUGH_FAILURES
        if (given_up or loops) and replica.since >= since:
            return replica
    return None


def newest_step(log_lines: Sequence[str]) -> str:
    """What the replica itself logged last, in a few words; its libraries say much else besides."""
    for line in reversed(log_lines):
        with suppress(ValueError, KeyError, TypeError):
            entry = json.loads(line)
            if entry["logger"].startswith("penstock."):
                words = str(entry["message"])
                return words if len(words) <= SHORT_ENOUGH else words[: SHORT_ENOUGH - 1] + "…"
    return ""
