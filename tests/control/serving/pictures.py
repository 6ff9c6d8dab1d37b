"""Replicas, nodes and gateways as the admin API tells of them, with what a test cares about."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from penstock.control.admin.rollout.models import GatewayModel, NodeModel, ReplicaModel

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def replica(replica_id: str = "r-1", **changes: Any) -> ReplicaModel:
    """A ready replica, changed."""
    fields: dict[str, Any] = {
        "id": replica_id,
        "deployment": "mini",
        "node": "n",
        "generation": 1,
        "template_digest": "d1",
        "deployment_uid": "u1",
        "devices": [],
        "state": "ready",
        "since": NOW,
        "evidence": "answers",
        "address": "127.0.0.1:1",
        "pid": 1,
        "restarts": 0,
        "exit_code": 0,
        "last_error": "",
        "log_path": "",
        "max_model_len": 0,
        "capacity": 0,
        "endpoints": [],
        "adapters": [],
    }
    return ReplicaModel.model_validate(fields | changes)


def node(**changes: Any) -> NodeModel:
    """A ready node, changed."""
    fields: dict[str, Any] = {
        "id": "n",
        "state": "ready",
        "since": NOW,
        "heard_at": NOW,
        "address": "127.0.0.1:2",
        "host": "127.0.0.1",
        "zone": "",
        "pid": 2,
        "cpus": 2,
        "gpus": 0,
        "memory_bytes": 2**33,
        "memory_available_bytes": 2**32,
    }
    return NodeModel.model_validate(fields | changes)


def gateway(**changes: Any) -> GatewayModel:
    """A ready gateway, changed."""
    fields: dict[str, Any] = {
        "id": "gw-1",
        "state": "ready",
        "address": "127.0.0.1:3",
        "pid": 3,
        "restarts": 0,
        "started_at": NOW,
        "last_error": "",
        "snapshot_version": 1,
        "reported_at": NOW,
        "queued": 0,
        "in_flight": 0,
        "requests": 0,
        "failed": 0,
    }
    return GatewayModel.model_validate(fields | changes)
