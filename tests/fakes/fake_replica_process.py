"""A replica process without an engine, for tests of whoever supervises replicas.

It takes the command line of `python -m penstock.replica` and behaves as its engine args say:

    says=TEXT        writes a line to its log before it loads
    load_ms=N        ready after N milliseconds (0)
    exit_code=N      says "penstock-replica: error: the fake exits with N" instead of becoming ready
    silent_while=F   does not answer Health while the file F exists
    refuses_while=F  refuses every call as one of another cluster token while the file F exists
    deaf=1           ignores SIGTERM
    lingers_ms=N     takes N milliseconds to end after SIGTERM, then writes "ended" to its output
    metrics=F        tells what is in the file F as its metrics, and hangs while there is none
    drains=F         has calls that never end: Drain lasts its deadline, which it adds to the file F
    keeps=F          adds a line to the file F for each list of what it is to hold, and holds that;
                     while the file F.deaf exists, it cannot be told
    wakes=HOW        can sleep, and wakes: "well"; "wrong": it ends with 75; "never": no answer
    engine_pid=F     starts a child that outlives it, and writes the child's pid to F
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import grpc
import grpc.aio

from penstock.v1 import inference_pb2, inference_pb2_grpc, nodes_pb2, nodes_pb2_grpc

MAX_MODEL_LEN = 2048
CAPACITY = 8
PATHS = ("silent_while", "refuses_while", "drains", "metrics", "keeps")


class FakeInference(inference_pb2_grpc.InferenceServicer):
    """Answers Health, Metrics, Drain and Adapters."""

    def __init__(
        self,
        wakes: str,
        silent_while: Path | None,
        refuses_while: Path | None,
        drains: Path | None,
        metrics: Path | None,
        keeps: Path | None,
    ) -> None:
        self._keeps = keeps
        self._wakes = wakes
        self._woken = 0
        self.kept: asyncio.Queue[inference_pb2.KeepAdapters] = asyncio.Queue()
        self._metrics = metrics
        self._drains = drains
        self._refuses_while = refuses_while
        self.state = inference_pb2.REPLICA_STATE_STARTING
        self._silent_while = silent_while

    async def Health(
        self, request: inference_pb2.HealthRequest, context: Any
    ) -> inference_pb2.HealthReply:
        await self._check_token(context)
        while self._silent_while and self._silent_while.exists():
            await asyncio.sleep(0.05)
        ready = self.state == inference_pb2.REPLICA_STATE_READY
        return inference_pb2.HealthReply(ok=ready, state=self.state, detail="" if ready else "busy")

    async def Metrics(
        self, request: inference_pb2.MetricsRequest, context: Any
    ) -> inference_pb2.MetricsReply:
        if (text := self._metrics) is None:
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, "no metrics here")
            raise AssertionError("abort raises")
        while not text.exists():
            await asyncio.sleep(0.05)
        return inference_pb2.MetricsReply(text=text.read_text())

    async def Drain(
        self, request: inference_pb2.DrainRequest, context: Any
    ) -> inference_pb2.DrainReply:
        await self._check_token(context)
        self.state = inference_pb2.REPLICA_STATE_DRAINING
        if self._drains:
            with self._drains.open("a") as file:
                file.write(f"{request.deadline_ms}\n")
            await asyncio.sleep(request.deadline_ms / 1000)
        return inference_pb2.DrainReply()

    async def Sleep(
        self, request: inference_pb2.SleepRequest, context: Any
    ) -> inference_pb2.SleepReply:
        if not self._wakes:
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, "no sleep here")
        self.state = inference_pb2.REPLICA_STATE_ASLEEP
        return inference_pb2.SleepReply()

    async def Wake(
        self, request: inference_pb2.WakeRequest, context: Any
    ) -> inference_pb2.WakeReply:
        if self._wakes == "never":
            await asyncio.Event().wait()
        if self._wakes == "wrong":
            sys.stderr.write("penstock-replica: error: woke wrongly: the fake is to\n")
            sys.stderr.flush()
            os._exit(75)
        self._woken += 1
        self.state = inference_pb2.REPLICA_STATE_READY
        return inference_pb2.WakeReply(wakes=self._woken)

    async def Adapters(
        self, request: inference_pb2.AdaptersRequest, context: Any
    ) -> inference_pb2.AdaptersReply:
        if self._keeps is None:
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, "no adapters here")
            raise AssertionError("abort raises")
        if self._keeps.with_suffix(".deaf").exists():
            await context.abort(grpc.StatusCode.UNAVAILABLE, "deaf")
        names = [f"{each.name}={each.digest}" for each in request.keep.adapters]
        with self._keeps.open("a") as file:
            file.write(f"{' '.join(names)} without {' '.join(request.keep.dropped)}\n")
        self.kept.put_nowait(request.keep)
        return inference_pb2.AdaptersReply()

    async def _check_token(self, context: Any) -> None:
        if self._refuses_while and self._refuses_while.exists():
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "another cluster token")


async def serve(options: argparse.Namespace, behaviour: dict[str, str]) -> int:
    """The life of the fake, ready once its agent knows all; returns its exit code."""
    stop = asyncio.Event()
    if "deaf" in behaviour:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    else:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    paths = (Path(behaviour[name]) if name in behaviour else None for name in PATHS)
    service = FakeInference(behaviour.get("wakes", ""), *paths)
    server = grpc.aio.server()
    inference_pb2_grpc.add_InferenceServicer_to_server(service, server)  # type: ignore[no-untyped-call]
    address = f"127.0.0.1:{server.add_insecure_port(options.listen)}"
    await server.start()
    hello = nodes_pb2.RegisterReplicaRequest(
        replica_id=options.replica_id, address=address, pid=os.getpid()
    )
    async with grpc.aio.insecure_channel(options.agent) as channel:
        agent = nodes_pb2_grpc.NodeAgentStub(channel)  # type: ignore[no-untyped-call]
        try:
            await agent.RegisterReplica(hello, timeout=5)
        except grpc.aio.AioRpcError as error:
            sys.stderr.write(f"penstock-replica: error: cannot register: {error.details()}\n")
            return 73
        sys.stderr.write(f"{behaviour.get('says', '')}\n")
        await asyncio.sleep(int(behaviour.get("load_ms", 0)) / 1000)
        if code := int(behaviour.get("exit_code", 0)):
            sys.stderr.write(f"penstock-replica: error: the fake exits with {code}\n")
            return code
        hello.max_model_len, hello.capacity = MAX_MODEL_LEN, CAPACITY
        hello.adapter_slots, hello.max_adapter_rank = options.max_adapters, options.max_adapter_rank
        hello.adapters.extend(map(adapter, options.adapter))
        await agent.RegisterReplica(hello, timeout=5)
        service.state = inference_pb2.REPLICA_STATE_READY
        async with asyncio.TaskGroup() as tasks:
            telling = tasks.create_task(tell_kept(service, agent, hello))
            await stop.wait()
            telling.cancel()
    await asyncio.sleep(int(behaviour.get("lingers_ms", 0)) / 1000)
    sys.stdout.write("ended\n")
    await server.stop(grace=None)
    return 0


async def tell_kept(
    service: FakeInference, agent: Any, hello: nodes_pb2.RegisterReplicaRequest
) -> None:
    """Holds what it is to hold, but for what fails, and says so."""
    while True:
        keep = await service.kept.get()
        del hello.adapters[:], hello.failed_adapters[:]
        for each in keep.adapters:
            if each.name.startswith("broken"):
                hello.failed_adapters.add(name=each.name, digest=each.digest, reason="broken")
            else:
                hello.adapters.add(name=each.name, digest=each.digest)
        await agent.RegisterReplica(hello, timeout=5)


def adapter(text: str) -> inference_pb2.Adapter:
    """What the flag says."""
    name, _, source = text.partition("=")
    return inference_pb2.Adapter(name=name, digest=source.removeprefix("sha256:"))


def main() -> int:
    """Parses what a replica is told, and ignores what a fake need not know."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--replica-id", required=True)
    parser.add_argument("--listen", required=True)
    parser.add_argument("--agent", required=True)
    parser.add_argument("--engine-arg", action="append", default=[])
    parser.add_argument("--adapter", action="append", default=[])
    parser.add_argument("--max-adapters", type=int, default=0)
    parser.add_argument("--max-adapter-rank", type=int, default=0)
    options, _ = parser.parse_known_args()
    behaviour = dict(setting.split("=", 1) for setting in options.engine_arg)
    if path := behaviour.get("engine_pid"):
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
        child.returncode = 0  # it is to outlive us, without a warning
        Path(path).write_text(str(child.pid))
    return asyncio.run(serve(options, behaviour))


if __name__ == "__main__":
    raise SystemExit(main())
