"""What a replica and its callers prove themselves by to each other, without the cluster's token.

A replica runs what comes with a model, so it never sees the cluster's token. Whoever holds that one
derives two others from it: callers show a replica one that opens this replica alone, and it shows
its agent one that is good for announcing itself there. They are derived and kept nowhere: who
starts anew knows them again, and with another cluster token they are others.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping

CALLERS_TOKEN, REPLICA_TOKEN = "PENSTOCK_CALLERS_TOKEN", "PENSTOCK_REPLICA_TOKEN"
"""The variables of its environment that a replica finds them in, and takes them out of."""


def callers_token(cluster_token: str, replica_id: str) -> str:
    """What this replica asks of callers; empty without a cluster token. Gateways derive the same,
    in `upstream/replica_token`."""
    return _derived(cluster_token, f"callers of replica\n{replica_id}")


def replica_token(cluster_token: str, agent: str, replica_id: str) -> str:
    """What this replica shows the agent that started it; empty without a cluster token. `agent`:
    what tells it from all others."""
    mark = _derived(cluster_token, f"replica of agent\n{agent}\n{replica_id}")
    return f"{replica_id}:{mark}" if mark else ""


def replica_of(token: str, cluster_token: str, agent: str) -> str:
    """The id of the agent's replica that this is the token of; empty where it is of none. Takes the
    same time for every wrong one of a length."""
    replica_id = token.rpartition(":")[0]
    right = replica_token(cluster_token, agent, replica_id)
    is_right = hmac.compare_digest(token.encode(), right.encode())
    return replica_id if is_right else ""


def replica_tokens(cluster_token: str, agent: str, replica_id: str) -> Mapping[str, str]:
    """What is added to the environment of a replica; nothing without a cluster token."""
    if not cluster_token:
        return {}
    return {
        CALLERS_TOKEN: callers_token(cluster_token, replica_id),
        REPLICA_TOKEN: replica_token(cluster_token, agent, replica_id),
    }


def _derived(cluster_token: str, purpose: str) -> str:
    if not cluster_token:
        return ""
    return hmac.digest(cluster_token.encode(), purpose.encode(), "sha256").hex()


__all__ = [
    "CALLERS_TOKEN",
    "REPLICA_TOKEN",
    "callers_token",
    "replica_of",
    "replica_token",
    "replica_tokens",
]
