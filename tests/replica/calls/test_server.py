"""The native server as a Python process holds it: who vanishes, and who is a stranger."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import grpc
import pytest

from penstock.replica import _server
from penstock.v1 import inference_pb2
from tests.fakes.replica_process import chat_request, inference_stub, session


class Cable:
    """Carries bytes between one client and a server, until it is cut without a word to either."""

    def __init__(self, server: str) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._server = server
        self._cut = threading.Event()
        self._ends: list[socket.socket] = []
        threading.Thread(target=self._plug, daemon=True).start()

    def cut(self) -> None:
        """From now on nothing passes, as when the other machine lost its power."""
        self._cut.set()

    def close(self) -> None:
        """Lets go of the sockets."""
        for end in (self._listener, *self._ends):
            end.close()

    def _plug(self) -> None:
        host, _, port = self._server.rpartition(":")
        client, _ = self._listener.accept()
        server = socket.create_connection((host, int(port)))
        self._ends = [client, server]
        threading.Thread(target=self._carry, args=(client, server), daemon=True).start()
        self._carry(server, client)

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if not self._cut.is_set():
                    target.sendall(data)


def until(condition: Callable[[], bool], seconds: float = 20) -> None:
    """Waits for a condition."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "never came true"
        time.sleep(0.01)


@contextlib.contextmanager
def serving(**options: Any) -> Iterator[Any]:
    """A ready server; nobody drains its inbox."""
    server = _server.InferenceServer("127.0.0.1:0", _server.Inbox(), **options)
    ready = inference_pb2.Load(state=inference_pb2.REPLICA_STATE_READY)
    server.set_load(ready.SerializeToString())
    try:
        yield server
    finally:
        server.stop(0)


def test_a_client_whose_machine_vanished_is_noticed_and_its_calls_end() -> None:
    with serving(keepalive_ms=300) as server:
        cable = Cable(server.address)
        with inference_stub(cable.address) as stub, session(stub) as client:
            client.start(chat_request("Hello"))
            until(lambda: server.running() == 1)
            cable.cut()
            until(lambda: server.running() == 0)
        cable.close()


@pytest.mark.parametrize(
    ("metadata", "told"),
    [
        ((), "no token"),
        ((("authorization", "Bearer guess"),), "another token"),
    ],
)
def test_a_stranger_is_told_what_it_lacks(metadata: Any, told: str) -> None:
    with (
        serving(callers_token="secret") as server,
        inference_stub(server.address) as stub,
        pytest.raises(grpc.RpcError) as caught,
    ):
        stub.Health(inference_pb2.HealthRequest(), timeout=10, metadata=metadata)
    assert caught.value.code() == grpc.StatusCode.UNAUTHENTICATED
    details = caught.value.details() or ""
    assert told in details
    assert "secret" not in details
