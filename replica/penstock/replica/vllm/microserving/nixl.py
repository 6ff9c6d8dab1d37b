"""The other way of bytes: the receiver fetches blocks out of the sender's memory, by NIXL.

The socket stays: it says who may, which blocks, and that they have been fetched. NIXL's own thread
would use a core while nothing moves, so both sides turn the crank while something does. Imports
NIXL, which is not among Penstock's dependencies: only where `microserving_transport=nixl` asks.
"""

from __future__ import annotations

import base64
import contextlib
import json
import logging
import select
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final
from uuid import uuid4

from penstock.replica.vllm.microserving.arrivals import runs
from penstock.replica.vllm.microserving.frames import BadFrame, Blocks

LANDS_WITHIN: Final = 20.0
"""Seconds that a fetch whose lease is closed may still take: until then its blocks stay pinned."""

_TURN_S: Final = 0.0002

Fetch = Callable[[Blocks, Sequence[int]], None]
"""Fetches the blocks of a frame into these. Raises `OSError`."""


class Exposed:
    """A worker's memory, as others read it, and its hands on theirs."""

    def __init__(self, memory: Any) -> None:
        """Raises `ValueError` where there is no NIXL."""
        try:
            from nixl._api import nixl_agent, nixl_agent_config
        except ImportError as error:
            raise ValueError(
                f"microserving_transport=nixl: {error}; install the package nixl, or say tcp"
            ) from None
        # Not on stdout, where a replica says that it is ready.
        own = logging.getLogger("nixl")
        own.handlers.clear()
        own.propagate = True
        self._lock = threading.Lock()
        self._size = memory.block_bytes
        self._bases = memory.bases()
        self._kind = "VRAM" if memory.device == "cuda" else "DRAM"
        self._name = f"penstock-{uuid4().hex}"
        config = nixl_agent_config(backends=["UCX"], enable_prog_thread=False)
        self._agent = nixl_agent(self._name, config)
        whole = memory.blocks * memory.block_bytes
        regions = [(base, whole, 0, "") for base in self._bases]
        self._agent.register_memory(regions, mem_type=self._kind)
        self._peers: Counter[str] = Counter()

    def told(self) -> bytes:
        """What a receiver has to know."""
        metadata = base64.b64encode(self._agent.get_agent_metadata()).decode()
        told = {"name": self._name, "bases": self._bases, "metadata": metadata}
        return json.dumps(told, separators=(",", ":")).encode()

    def wait_for(self, peer: socket.socket, seconds: float) -> None:
        """Lets the other side fetch, until it says something. Raises `TimeoutError`."""
        until = time.monotonic() + seconds
        while not select.select([peer], [], [], _TURN_S)[0]:
            with self._lock:
                self._agent.get_new_notifs()
            if time.monotonic() > until:
                raise TimeoutError("the receiver does not answer")

    @contextlib.contextmanager
    def source(self, memory: bytes) -> Iterator[Fetch]:
        """Fetches out of the memory that a sender has told of. Raises `BadFrame`, `OSError`."""
        name, bases, metadata = _read(memory, len(self._bases))
        with self._lock:
            if not self._peers[name]:
                self._agent.add_remote_agent(metadata)
            self._peers[name] += 1
        try:
            yield lambda frame, blocks: self._fetch(name, bases[frame.layer], frame, blocks)
        finally:
            with self._lock:
                self._peers[name] -= 1
                if not self._peers[name]:
                    self._agent.remove_remote_agent(name)

    def _fetch(self, name: str, base: int, frame: Blocks, blocks: Sequence[int]) -> None:
        size, here = self._size, self._bases[frame.layer]
        parts = runs(frame.sources, blocks)
        local = [(here + to * size, count * size, 0) for _, to, count in parts]
        remote = [(base + at * size, count * size, 0) for at, _, count in parts]
        with self._lock:
            handle = self._agent.initialize_xfer(
                "READ",
                self._agent.get_xfer_descs(local, self._kind),
                self._agent.get_xfer_descs(remote, self._kind),
                name,
            )
            state = self._agent.transfer(handle)
        until = time.monotonic() + LANDS_WITHIN
        try:
            while state == "PROC" and time.monotonic() < until:
                time.sleep(_TURN_S)
                with self._lock:
                    state = self._agent.check_xfer_state(handle)
        finally:
            with self._lock:
                self._agent.release_xfer_handle(handle)
        if state != "DONE":
            raise ConnectionError(f"blocks cannot be fetched: {state}")


def _read(memory: bytes, layers: int) -> tuple[str, list[int], bytes]:
    try:
        told = json.loads(memory)
        name, bases = str(told["name"]), [int(base) for base in told["bases"]]
        metadata = base64.b64decode(told["metadata"])
    except (ValueError, KeyError, TypeError) as error:
        raise BadFrame(f"a memory that cannot be read: {error}") from None
    if len(bases) != layers:
        raise BadFrame("a memory of another number of layers")
    return name, bases, metadata
