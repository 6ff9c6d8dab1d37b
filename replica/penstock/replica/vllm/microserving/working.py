"""The connector's half in each worker: what it takes and gives, step by step."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from penstock.replica.vllm.microserving.control import Worker as Control
from penstock.replica.vllm.microserving.memory import KvMemory
from penstock.replica.vllm.microserving.orders import StepOrders, StepSend
from penstock.replica.vllm.microserving.receiving import Receiver
from penstock.replica.vllm.microserving.sending import SendJob

log = logging.getLogger(__name__)


class Working:
    """Of one rank. All methods but `heard` are the engine's, and return at once."""

    def __init__(self, rank: int, host: str, *, by_layer: bool, transport: str) -> None:
        self._rank = rank
        self._host = host
        self._by_layer = by_layer
        self._transport = transport
        self._memory: KvMemory | None = None
        self._exposed: Any = None
        self._receiver: Receiver | None = None
        self._control: Control | None = None
        self._jobs: dict[str, SendJob] = {}  # by request
        self._ending: set[str] = set()  # requests whose blocks wait for their job

    def begin(self, layers: Mapping[str, Any], blocks: int) -> None:
        """vLLM has made its KV cache. Raises `ValueError`, `OSError`."""
        self._memory = KvMemory(layers, blocks)
        self._exposed = _exposed(self._transport, self._memory)
        self._control = Control(self.heard)
        self._receiver = Receiver(self._memory, self._host, self._control.send, self._exposed)

    def told(self) -> dict[str, Any]:
        """How its scheduler finds it, and others."""
        assert self._memory
        assert self._control
        assert self._receiver
        return {
            "host": self._receiver.host,
            "port": self._receiver.port,
            "name": self._control.name,
            "secret": self._control.secret,
            "layout": self._memory.layout,
            "block_bytes": self._memory.block_bytes * len(self._memory.layers),
        }

    def heard(self, message: dict[str, Any]) -> None:
        """An order of the scheduler's, between steps."""
        assert self._receiver
        if "open" in message:
            self._receiver.open(message)
        elif "close" in message:
            self._receiver.end(message["close"], message["nonce"])

    def before_step(self, orders: StepOrders) -> None:
        """What has to be done before blocks may be written by others than before."""
        if orders.begun:
            return
        orders.begun = True
        self._ending.update(orders.ended)
        for request_id in orders.preempted:
            if job := self._jobs.get(request_id):
                job.rewind()
        for request_id in orders.dropped:
            if job := self._jobs.get(request_id):
                job.stop("it is not wanted any more")
        for send in orders.sends:
            self._job(send)

    def _job(self, send: StepSend) -> None:
        assert self._memory
        assert self._control
        if send.request_id not in self._jobs:
            args = (self._memory, send.target, self._rank, self._control.send, self._exposed)
            self._jobs[send.request_id] = SendJob(*args)

    def layer_done(self, orders: StepOrders, name: str) -> None:
        """A layer of this step is computed, or will be by what the device does next."""
        if self._by_layer and orders.sends and self._memory:
            self._give(orders, self._memory.layers[name])

    def step_done(self, orders: StepOrders) -> None:
        """All layers are."""
        if not orders.sends or self._memory is None:
            return
        if not self._by_layer:
            for layer in range(len(self._memory.layers)):
                self._give(orders, layer)
        for send in orders.sends:
            if send.last and (job := self._jobs.get(send.request_id)):
                job.end()

    def _give(self, orders: StepOrders, layer: int) -> None:
        assert self._memory
        event = None
        if self._memory.device == "cuda":
            import torch

            event = torch.cuda.Event()
            event.record()
        for send in orders.sends:
            if job := self._jobs.get(send.request_id):
                job.add(layer, send.blocks, event)

    def ended(self) -> set[str]:
        """Requests whose blocks nobody needs any more; each is told once."""
        over = {one for one in self._ending if not self._runs(one)}
        self._ending -= over
        for request_id in over:
            self._jobs.pop(request_id, None)
        return over

    def _runs(self, request_id: str) -> bool:
        job = self._jobs.get(request_id)
        return job is not None and job.running

    def close(self) -> None:
        """Ends its sockets, and so its threads."""
        for job in self._jobs.values():
            job.stop("the engine stops")
        if self._receiver:
            self._receiver.close()
        if self._control:
            self._control.close()


def _exposed(transport: str, memory: KvMemory) -> Any:
    """What lets others read this memory, where the transport is one by which they do."""
    if transport == "tcp":
        return None
    from penstock.replica.vllm.microserving.nixl import Exposed

    return Exposed(memory)
