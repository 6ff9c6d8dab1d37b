"""The command line that runs a replica. Pure."""

from __future__ import annotations

import sys

from penstock.v1 import nodes_pb2


def replica_command(spec: nodes_pb2.ReplicaSpec, agent: str, host: str) -> list[str]:
    """How to start the replica of a spec, so that it registers with `agent` (host:port).

    `host` is the interface it listens on; it takes any free port there and tells which.
    """
    command = [sys.executable, "-m", "penstock.replica"]
    command += ["--replica-id", spec.replica_id, "--deployment", spec.deployment]
    command += ["--engine", spec.engine, "--model", spec.model]
    command += ["--served-name", spec.served_name or spec.deployment]
    for setting in spec.engine_args:
        command += ["--engine-arg", setting]
    for adapter in spec.adapters:
        command += ["--adapter", f"{adapter.name}={adapter.source}"]
    if spec.max_ongoing:
        command += ["--max-ongoing", str(spec.max_ongoing)]
    return [*command, "--listen", f"{host}:0", "--agent", agent]
