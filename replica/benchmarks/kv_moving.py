"""KV from one worker to another: `python replica/benchmarks/kv_moving.py [--transport nixl]`.

Two processes, each with the KV of so many layers and blocks in torch's memory, no engine. Prints
one JSON object: milliseconds of one transfer of all blocks (the median of ten, the first left out),
and CPU seconds that both sides take in ten idle seconds with a lease open and a peer connected.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import queue
import statistics
import sys
import time
from multiprocessing.connection import Connection
from typing import Any

import torch

from penstock.replica.vllm.microserving.memory import KvMemory
from penstock.replica.vllm.microserving.orders import Target
from penstock.replica.vllm.microserving.receiving import Receiver
from penstock.replica.vllm.microserving.sending import SendJob

_NONCE = b"n" * 32
_ROUNDS = 11


def _memory(layers: int, blocks: int, block_bytes: int) -> KvMemory:
    kv = {
        f"layer{n}": torch.full((blocks, block_bytes), n, dtype=torch.uint8) for n in range(layers)
    }
    return KvMemory(kv, blocks)


def _exposed(transport: str, memory: KvMemory) -> Any:
    if transport == "tcp":
        return None
    from penstock.replica.vllm.microserving.nixl import Exposed

    return Exposed(memory)


def _order(lease: str, blocks: int) -> dict[str, Any]:
    told = {"open": lease, "nonce": _NONCE.hex(), "fingerprint": _NONCE.hex(), "ttl": 10.0}
    return {**told, "count": blocks, "blocks": list(range(blocks))}


def _receive(pipe: Connection, shape: tuple[int, int, int], transport: str) -> None:
    told: queue.Queue[dict[str, Any]] = queue.Queue()
    memory = _memory(*shape)
    receiver = Receiver(memory, "127.0.0.1", told.put, _exposed(transport, memory))
    pipe.send(receiver.port)
    while (lease := pipe.recv()) is not None:
        if lease == "cpu":
            pipe.send(time.process_time())
            continue
        receiver.open(_order(lease, shape[1]))
        pipe.send(True)
    receiver.close()


def _send(memory: KvMemory, port: int, lease: str, exposed: Any) -> SendJob:
    blocks = memory.blocks
    ranks = (("127.0.0.1", port),)
    target = Target(lease, lease, _NONCE, _NONCE, ranks, 0, 0, blocks)
    return SendJob(memory, target, 0, _REPORTS.put, exposed)


_REPORTS: queue.Queue[dict[str, Any]] = queue.Queue()


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--blocks", type=int, default=128, help="of 32 tokens")
    parser.add_argument("--block-kib", type=int, default=128, help="of one layer")
    parser.add_argument("--transport", choices=("tcp", "nixl"), default="tcp")
    asked = parser.parse_args()
    shape = (asked.layers, asked.blocks, asked.block_kib << 10)
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    peer = context.Process(target=_receive, args=(theirs, shape, asked.transport), daemon=True)
    peer.start()
    port = ours.recv()
    memory = _memory(*shape)
    exposed = _exposed(asked.transport, memory)
    times = [_round(ours, memory, port, f"lease{n}", exposed) for n in range(_ROUNDS)]
    told = {
        "transport": asked.transport,
        "mib": asked.layers * asked.blocks * asked.block_kib / 1024,
        "ms": round(statistics.median(times[1:]), 1),
        "fastest_ms": round(min(times), 1),
        "idle_cpu_s_in_10_s": round(_idle(ours, memory, port, exposed), 3),
    }
    ours.send(None)
    peer.join()
    sys.stdout.write(json.dumps(told) + "\n")


def _round(pipe: Connection, memory: KvMemory, port: int, lease: str, exposed: Any) -> float:
    """Milliseconds of one transfer of everything."""
    pipe.send(lease)
    pipe.recv()
    pairs = [(block, block) for block in range(memory.blocks)]
    began = time.perf_counter()
    job = _send(memory, port, lease, exposed)
    for layer in range(len(memory.layers)):
        job.add(layer, pairs)
    job.end()
    report = _REPORTS.get()
    assert not report["error"], report
    return (time.perf_counter() - began) * 1e3


def _idle(pipe: Connection, memory: KvMemory, port: int, exposed: Any) -> float:
    """CPU seconds of both sides in ten, with nothing to send."""
    pipe.send("idle")
    pipe.recv()
    job = _send(memory, port, "idle", exposed)
    before = time.process_time() + _cpu_of(pipe)
    time.sleep(10)
    used = time.process_time() + _cpu_of(pipe) - before
    job.stop("that was all")
    _REPORTS.get()
    return used


def _cpu_of(pipe: Connection) -> float:
    pipe.send("cpu")
    seconds: float = pipe.recv()
    return seconds


if __name__ == "__main__":
    main()
