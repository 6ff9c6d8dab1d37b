"""A real replica process without a node agent, and what tests ask of it.

The process is `python -m penstock.replica`; it tells on stdout that it is ready.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import select
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from penstock.v1 import inference_pb2, inference_pb2_grpc, microserving_pb2_grpc
from tests.fakes.replica_agent import ReplicaAgent
from tests.fakes.warm_pool import Claimed, Pool


@dataclass(frozen=True, slots=True)
class Ended:
    """A replica process that has ended."""

    code: int
    last_line: str


class ReplicaProcess:
    """A started replica. Its stderr goes to a file."""

    def __init__(
        self,
        log: Path,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        pool: Pool | None = None,
    ) -> None:
        """`pool`: it is claimed from this one, for a quarter of a start's CPU."""
        command = [sys.executable, "-m", "penstock.replica", "--replica-id", "r1"]
        command += ["--deployment", "test-model", *arguments]
        self._log = log
        self.process: subprocess.Popen[bytes] | Claimed
        if pool is not None:
            self.process = Claimed(pool, command, log, env)
        else:
            self.process = _started(command, log, env)
        self.address = ""
        self.rest = ""  # of MicroServing
        self.agent: ReplicaAgent | None = None

    def await_ready(self, within: float) -> None:
        """Reads the address once the replica says that it is ready; fails if it ends instead."""
        assert self.process.stdout
        readable, _, _ = select.select([self.process.stdout], [], [], within)
        line = self.process.stdout.readline() if readable else b""
        if not line:
            raise AssertionError(f"the replica is not ready:\n{self.log()[-4000:]}")
        ready = json.loads(line)
        assert ready["ready"] is True
        assert ready["pid"] == self.process.pid
        self.address = ready["address"]
        self.rest = ready.get("microserving_rest", "")

    def await_registered(self, agent: ReplicaAgent, within: float) -> None:
        """Reads the address once the replica has told its agent that it is ready."""
        try:
            said = agent.heard_when(lambda said: said.capacity > 0, within)
            self.address, self.rest = said.address, said.microserving_rest
            self.agent = agent
        except queue.Empty:
            raise AssertionError(f"the replica is not ready:\n{self.log()[-4000:]}") from None

    def log(self) -> str:
        """Everything that it wrote to stderr."""
        return self._log.read_text(errors="replace")

    def ended(self, within: float) -> Ended:
        """Waits for its end."""
        code = self.process.wait(within)
        lines = self.log().splitlines()
        return Ended(code, lines[-1] if lines else "")

    def signal(self, number: int) -> None:
        """Sends a signal to the replica alone."""
        os.kill(self.process.pid, number)

    def close(self) -> None:
        """Ends it, if it has not ended."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(40)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()


def _started(
    command: Sequence[str], log: Path, env: Mapping[str, str] | None
) -> subprocess.Popen[bytes]:
    with log.open("wb") as stderr:
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=stderr,
            start_new_session=True,
            env={**os.environ, **(env or {})},
        )


@contextlib.contextmanager
def running_replica(
    log: Path,
    *arguments: str,
    within: float = 20,
    agent: ReplicaAgent | None = None,
    env: Mapping[str, str] | None = None,
    pool: Pool | None = None,
) -> Iterator[ReplicaProcess]:
    """A replica that is ready, with an agent (out of a pool, too) or without."""
    words = () if agent is None else ("--agent", agent.address)
    replica = ReplicaProcess(log, *arguments, *words, env=env, pool=pool)
    try:
        if agent is None:
            replica.await_ready(within)
        else:
            replica.await_registered(agent, within)
        yield replica
    finally:
        replica.close()


@contextlib.contextmanager
def inference_stub(address: str) -> Iterator[inference_pb2_grpc.InferenceStub]:
    """A client of its Inference service, on a connection of its own."""
    options = [("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(address, options) as channel:
        yield inference_pb2_grpc.InferenceStub(channel)  # type: ignore[no-untyped-call]


@contextlib.contextmanager
def microserving_stub(address: str) -> Iterator[Any]:
    """A client of its MicroServing service, on a connection of its own."""
    options = [("grpc.use_local_subchannel_pool", 1)]
    with grpc.insecure_channel(address, options) as channel:
        yield microserving_pb2_grpc.MicroServingStub(channel)  # type: ignore[no-untyped-call]


def chat_request(text: str, request_id: str = "t1", **fields: Any) -> inference_pb2.CallRequest:
    """A chat completion; `fields` go into its body."""
    body = {"model": "test-model", "messages": [{"role": "user", "content": text}], **fields}
    return raw_request(json.dumps(body).encode(), request_id)


def raw_request(body: bytes, request_id: str = "t1") -> inference_pb2.CallRequest:
    """A chat completion with this very body."""
    return inference_pb2.CallRequest(
        request_id=request_id,
        method="POST",
        path="/v1/chat/completions",
        body=body,
        model="test-model",
    )


def sse_objects(body: bytes) -> list[dict[str, Any]]:
    """The JSON objects of an SSE body, which must end with [DONE]."""
    events = body.decode().split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""], events[-2:]
    return [json.loads(event.removeprefix("data: ")) for event in events[:-2]]


def answer_of(events: Sequence[inference_pb2.CallEvent]) -> bytes:
    """All body bytes of a call's events."""
    return b"".join(event.chunk.body for event in events)


def load_when(stub: Any, wanted: Any, within: float = 10) -> inference_pb2.Load:
    """The first load that satisfies `wanted`."""
    watch = stub.WatchLoad(inference_pb2.WatchLoadRequest(watcher_id="test"), timeout=within)
    last: inference_pb2.Load | None = None
    try:
        for last in watch:
            assert last is not None
            if wanted(last):
                return last
    except grpc.RpcError as error:
        raise AssertionError(f"the load never became as wanted; last: {last}") from error
    finally:
        watch.cancel()
    raise AssertionError(f"the load stream ended; last: {last}")


class SessionClient:
    """One `Inference.Session` as a gateway holds it."""

    def __init__(self, stub: Any) -> None:
        self._frames: queue.SimpleQueue[inference_pb2.ClientFrame | None] = queue.SimpleQueue()
        self._call = stub.Session(iter(self._frames.get, None))
        self.events: dict[int, list[inference_pb2.CallEvent]] = {}
        self.loads: list[inference_pb2.Load] = []
        self.frames = 0

    def start(
        self, *requests: inference_pb2.CallRequest, first_id: int = 1, credit: int = 0
    ) -> None:
        """Starts calls in one frame, with ids from `first_id` on."""
        starts = [
            inference_pb2.Start(call_id=call_id, request=request, initial_credit_bytes=credit)
            for call_id, request in enumerate(requests, first_id)
        ]
        self._frames.put(inference_pb2.ClientFrame(starts=starts))

    def hello(self, gateway_id: str = "", *, watch_load: bool = True) -> None:
        """Says whose the session is. In the first frame."""
        hello = inference_pb2.Hello(gateway_id=gateway_id, watch_load=watch_load)
        self._frames.put(inference_pb2.ClientFrame(hello=hello))

    def cancel(self, call_id: int) -> None:
        """Cancels a call."""
        self._frames.put(inference_pb2.ClientFrame(cancels=[call_id]))

    def grant(self, call_id: int, granted: int) -> None:
        """Grants more bytes to a call."""
        credit = inference_pb2.Credit(call_id=call_id, bytes=granted)
        self._frames.put(inference_pb2.ClientFrame(credits=[credit]))

    def read_frame(self) -> inference_pb2.ServerFrame:
        """The next frame; its events are kept by call id, too."""
        frame: inference_pb2.ServerFrame = next(self._call)
        self.frames += 1
        for event in frame.events:
            self.events.setdefault(event.call_id, []).append(event)
        if frame.HasField("load"):
            self.loads.append(frame.load)
        return frame

    def read_until_ended(self, *call_ids: int) -> None:
        """Reads frames until these calls have ended."""
        while not all(self.has_ended(call_id) for call_id in call_ids):
            self.read_frame()

    def read_to_end(self) -> None:
        """Reads until the replica ends the session; fails if it ends it with an error."""
        with contextlib.suppress(StopIteration):
            while True:
                self.read_frame()

    def has_ended(self, call_id: int) -> bool:
        """Whether the call's last event was read."""
        events = self.events.get(call_id, [])
        ends = ("finished", "failed", "cancelled")
        return bool(events) and any(events[-1].HasField(end) for end in ends)

    def body(self, call_id: int) -> bytes:
        """What was read of a call's body."""
        return answer_of(self.events.get(call_id, []))

    def half_close(self) -> None:
        """Says that no more comes."""
        self._frames.put(None)

    def close(self) -> None:
        """Leaves without a word."""
        self._call.cancel()
        self._frames.put(None)


@contextlib.contextmanager
def session(stub: Any) -> Iterator[SessionClient]:
    """A session, left at the end."""
    client = SessionClient(stub)
    try:
        yield client
    finally:
        client.close()
