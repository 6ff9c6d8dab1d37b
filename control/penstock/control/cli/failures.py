"""Why a revision of a deployment failed, in words that say where to look further."""

from __future__ import annotations

from penstock.control.admin.rollout.models import DeploymentModel


def why(deployment: DeploymentModel, most: int | None = None) -> str:
    """What is in the way of its replicas, or of the revision whose place was taken by itself; at
    `most` so many characters of it, and where to read more. Empty: nothing is."""
    told, text = deployment.status.rollout, deployment.status.message
    if told and told.undoes and not text:
        text = f"revision {told.undoes} failed: {told.cause}"
    text = " ".join(text.split())
    if most and len(text) > most:
        text = f"{text[: most - 1]}…"
    return f"{text}{more(told.failed_replica)}" if told and text else text


def more(replica: str) -> str:
    """Where the log of a replica is that failed; empty where none did."""
    return f"; `penstock logs {replica}` shows its log" if replica else ""
