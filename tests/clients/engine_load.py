"""Prints what a replica's engine does as JSON: `engine_load.py REPLICA_ID ADDRESS TOKEN_FILE`.

A program of its own: it speaks gRPC, which the clients' environment does not hold.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import grpc

from penstock.control.replica_tokens import callers_token
from penstock.v1 import inference_pb2, inference_pb2_grpc


def main() -> None:
    """Asks once."""
    replica_id, address, token_file = sys.argv[1:]
    token = callers_token(Path(token_file).read_text().strip(), replica_id)
    metadata = (("authorization", f"Bearer {token}"),)
    with grpc.insecure_channel(address) as channel:
        stub = inference_pb2_grpc.InferenceStub(channel)  # type: ignore[no-untyped-call]
        watch = stub.WatchLoad(
            inference_pb2.WatchLoadRequest(watcher_id="client tests"), metadata=metadata, timeout=10
        )
        load = next(iter(watch))
        watch.cancel()
    print(json.dumps({"running": load.running, "waiting": load.waiting, "tokens": load.tokens}))  # noqa: T201


if __name__ == "__main__":
    main()
