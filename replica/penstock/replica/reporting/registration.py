"""Tells the node agent of this replica: that it begins, is ready, and which adapters it holds."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence

import grpc
import grpc.aio

from penstock.replica.adapters.agent import agent_stub, metadata_of
from penstock.replica.endings import NotRegistered
from penstock.replica.stages import Stages
from penstock.v1 import inference_pb2, nodes_pb2

log = logging.getLogger(__name__)

_TIMEOUT = 10.0  # seconds
_AGAIN = 1.0  # seconds


class Registration:
    """Registers with the agent at `agent` (host:port), with a token that this agent gave."""

    def __init__(
        self,
        agent: str,
        replica_id: str,
        address: str,
        pid: int,
        own_token: str = "",
        stages: Stages | None = None,
    ) -> None:
        self._agent = agent
        self._metadata = metadata_of(own_token)
        self._hello = nodes_pb2.RegisterReplicaRequest(
            replica_id=replica_id, address=address, pid=pid
        )
        self._stages = stages
        self._news = asyncio.Event()

    async def announce(self) -> None:
        """The first word, before serving. Raises `NotRegistered`."""
        try:
            await self._register()
        except grpc.aio.AioRpcError as error:
            raise NotRegistered(
                f"cannot register with the node agent at {self._agent}: "
                f"{error.code().name}: {error.details()}"
            ) from None

    def ready(
        self, max_model_len: int, capacity: int, endpoints: Sequence[str] = (), rest: str = ""
    ) -> None:
        """The second word. `rest`: host:port of MicroServing's REST; empty: none."""
        self._hello.max_model_len = max_model_len
        self._hello.capacity = capacity
        self._hello.endpoints[:] = endpoints
        self._hello.microserving_rest = rest
        self._news.set()

    def holds(
        self,
        adapters: Iterable[inference_pb2.Adapter],
        failed: Iterable[inference_pb2.AdapterFailure],
        slots: int,
        max_rank: int,
    ) -> None:
        """The adapters that it holds now, and those that it could not load."""
        del self._hello.adapters[:], self._hello.failed_adapters[:]
        self._hello.adapters.extend(adapters)
        self._hello.failed_adapters.extend(failed)
        self._hello.adapter_slots = slots
        self._hello.max_adapter_rank = max_rank
        self._news.set()

    def resume_known(self, no_resume: str, failed: bool) -> None:
        """Whether it goes on with answers that others began; see `Engine.no_resume`."""
        self._hello.resumes = not no_resume
        self._hello.no_resume = no_resume
        self._hello.resume_test_failed = failed
        self._news.set()

    async def keep_telling(self) -> None:
        """Tells what is new, the newest alone, for as long as it runs. Tries until it is heard: an
        agent may be down, and comes back."""
        while True:
            await self._news.wait()
            self._news.clear()
            try:
                await self._register()
            except grpc.aio.AioRpcError as error:
                log.warning("the node agent does not answer", extra={"code": error.code().name})
                self._news.set()
                await asyncio.sleep(_AGAIN)

    async def _register(self) -> None:
        if self._stages is not None:
            del self._hello.stages[:]
            for name, ms in self._stages.told().items():
                self._hello.stages.add(name=name, ms=ms)
        async with agent_stub(self._agent) as stub:
            await stub.RegisterReplica(self._hello, timeout=_TIMEOUT, metadata=self._metadata)
