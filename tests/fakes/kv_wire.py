"""A wire between two replicas that move KV, which bends, cuts or stops what goes through it."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from penstock.replica.vllm.microserving import sockets
from penstock.replica.vllm.microserving.frames import Blocks, End, encoded
from penstock.v1 import microserving_pb2 as pb


@dataclass
class Wire:
    """From its port to another. `flip`: is done to each byte of each block. `frames`: so many of
    blocks go through; then it is cut, or stands still."""

    host: str
    port: int
    block_bytes: int
    flip: int = 0
    frames: int = 1 << 30
    stands: bool = False
    passed: int = 0
    stopped: threading.Event = field(default_factory=threading.Event)

    def serve(self, server: socket.socket) -> None:
        """One connection."""
        with contextlib.suppress(OSError):
            here, _ = server.accept()
            with here, socket.create_connection((self.host, self.port)) as there:
                sockets.send(there, sockets.receive(here))
                sockets.send(here, sockets.receive(there))
                self._pass(here, there)

    def _pass(self, here: socket.socket, there: socket.socket) -> None:
        while True:
            frame = sockets.receive(here)
            if isinstance(frame, Blocks):
                if self.passed == self.frames:
                    return self._stand(there)
                payload = bytearray(len(frame.places) * self.block_bytes)
                sockets.fill(here, [memoryview(payload)])
                bent = bytes(byte ^ self.flip for byte in payload) if self.flip else payload
                there.sendall(encoded(frame) + bent)
                self.passed += 1
            else:
                sockets.send(there, frame)
                if isinstance(frame, End):
                    sockets.send(here, sockets.receive(there))
                    return

    def _stand(self, there: socket.socket) -> None:
        """Until the other end has gone, or the test is done."""
        while self.stands and not select.select([there], [], [], 0.02)[0]:
            if self.stopped.is_set():
                return


@contextlib.contextmanager
def through(lease: pb.PrepRecvReply, wire: Wire) -> Iterator[pb.PrepRecvReply]:
    """The lease, with the wire's address in place of its own."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=wire.serve, args=(server,), daemon=True)
        thread.start()
        bent = pb.PrepRecvReply()
        bent.CopyFrom(lease)
        bent.kv_addr.ranks[0].host = "127.0.0.1"
        bent.kv_addr.ranks[0].port = server.getsockname()[1]
        try:
            yield bent
        finally:
            wire.stopped.set()
            with contextlib.suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            thread.join()
