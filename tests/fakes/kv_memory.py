"""KV of an engine that is none: blocks of bytes, and what its worker would tell its scheduler."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any

from penstock.replica.vllm.microserving.orders import Target
from penstock.replica.vllm.microserving.receiving import Receiver
from penstock.replica.vllm.microserving.sending import SendJob

NONCE = b"n" * 32
FINGERPRINT = b"f" * 32


class FakeMemory:
    """As `KvMemory`: so many layers of so many blocks."""

    device = "cpu"

    def __init__(self, layers: int, blocks: int, block_bytes: int = 64, fill: int = 0) -> None:
        self.layers = {f"layer{at}": at for at in range(layers)}
        self.block_bytes = block_bytes
        self.held = [
            [bytearray([(fill + 7 * layer + block) % 256] * block_bytes) for block in range(blocks)]
            for layer in range(layers)
        ]

    def outgoing(self, layer: int, blocks: Sequence[int]) -> list[memoryview]:
        return [memoryview(self.held[layer][block]) for block in blocks]

    def incoming(
        self, layer: int, blocks: Sequence[int]
    ) -> tuple[list[memoryview], Callable[[], None]]:
        return self.outgoing(layer, blocks), lambda: None


class Told:
    """What was told, by its kind."""

    def __init__(self) -> None:
        self._told: dict[str, queue.Queue[dict[str, Any]]] = {}
        self._lock = threading.Lock()

    def __call__(self, message: dict[str, Any]) -> None:
        self._of(next(iter(message))).put(message)

    def next(self, kind: str) -> dict[str, Any]:
        """The next of this kind; waits for it."""
        return self._of(kind).get(timeout=20)

    def empty(self, kind: str) -> bool:
        """Whether no more of it was told."""
        return self._of(kind).empty()

    def _of(self, kind: str) -> queue.Queue[dict[str, Any]]:
        with self._lock:
            return self._told.setdefault(kind, queue.Queue())


def order(blocks: list[int], lease: str = "lease") -> dict[str, Any]:
    """A scheduler's, to open a lease of these blocks."""
    told = {"nonce": NONCE.hex(), "fingerprint": FINGERPRINT.hex(), "ttl": 10.0}
    return {"open": lease, **told, "count": len(blocks), "blocks": blocks}


def target(port: int, end: int, **other: Any) -> Target:
    """Where so many blocks of a prompt go."""
    told = {"job": "job", "lease": "lease", "nonce": NONCE, "fingerprint": FINGERPRINT}
    places = {"ranks": (("127.0.0.1", port),), "first": 0, "begin": 0, "end": end}
    return Target(**{**told, **places, **other})


class Pair:
    """A receiver and the memory of a sender beside it."""

    def __init__(self, layers: int = 3, blocks: int = 8, block_bytes: int = 64) -> None:
        self.here = FakeMemory(layers, blocks, block_bytes, fill=100)
        self.there = FakeMemory(layers, blocks, block_bytes)
        self.told, self.reports = Told(), Told()
        self.receiver = Receiver(self.there, "127.0.0.1", self.told)

    def job(self, end: int, port: int = 0, **other: Any) -> SendJob:
        """One that sends to the receiver, or to another port."""
        where = target(port or self.receiver.port, end, **other)
        return SendJob(self.here, where, 0, self.reports)

    def send_all(self, job: SendJob, pairs: list[tuple[int, int]]) -> None:
        """Every layer of these blocks, and the end."""
        for layer in range(len(self.here.layers)):
            job.add(layer, pairs)
        job.end()

    def end(self, nonce: str = NONCE.hex()) -> None:
        """The lease, as its scheduler has it ended."""
        self.receiver.end("lease", nonce)

    def close(self) -> None:
        """Of the receiver."""
        self.receiver.close()
