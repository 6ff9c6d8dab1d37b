"""Our KV connector, as vLLM knows it: one half in its scheduler, one in each worker.

vLLM ends an engine in which one of these methods raises. So each of those that a step calls is
guarded: what goes wrong is logged and counted, and the step goes on. Imports vLLM.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from vllm.distributed.kv_transfer.kv_connector.v1.base import (
    KVConnectorBase_V1,
    KVConnectorHandshakeMetadata,
    KVConnectorMetadata,
    KVConnectorRole,
)

from penstock.replica.vllm.microserving import checks, control, core
from penstock.replica.vllm.microserving.orders import StepOrders
from penstock.replica.vllm.microserving.scheduling import Scheduling
from penstock.replica.vllm.microserving.working import Working

log = logging.getLogger(__name__)

_Method = TypeVar("_Method", bound=Callable[..., Any])


@dataclass
class Told(KVConnectorHandshakeMetadata):  # type: ignore[misc]
    """What a worker tells its scheduler at the start."""

    worker: dict[str, Any]


@dataclass
class Orders(KVConnectorMetadata):  # type: ignore[misc]
    """What the scheduler tells its workers with a step."""

    orders: StepOrders


def _guarded(otherwise: Callable[[], Any] = lambda: None) -> Callable[[_Method], _Method]:
    """What the method gives where it raises."""

    def guard(method: _Method) -> _Method:
        @functools.wraps(method)
        def guarded(self: Any, *args: Any, **more: Any) -> Any:
            try:
                return method(self, *args, **more)
            except Exception:
                self.failed(method.__name__)
                return otherwise()

        return guarded  # type: ignore[return-value]

    return guard


class PenstockConnector(KVConnectorBase_V1):  # type: ignore[misc]
    """Both halves; which of them it is, its role says."""

    def __init__(self, vllm_config: Any, role: Any, kv_cache_config: Any) -> None:
        super().__init__(vllm_config, role, kv_cache_config)
        checks.check_kv(kv_cache_config)
        self._failures = 0
        self._thread: core.Thread | None = None
        extra = vllm_config.kv_transfer_config.kv_connector_extra_config
        self._blocks = kv_cache_config.num_blocks
        if role is KVConnectorRole.SCHEDULER:
            core.install()
            size = vllm_config.cache_config.block_size
            self.scheduling = Scheduling(size, self._blocks)
            self._links: list[control.Link] = []
        else:
            rank = vllm_config.parallel_config.rank
            self._working = Working(
                rank, extra["host"], by_layer=extra["by_layer"], transport=extra["transport"]
            )

    def failed(self, hook: str) -> None:
        """A method that vLLM calls has raised."""
        self._failures += 1
        if self._failures < 100 or self._failures % 1000 == 0:
            log.exception("microserving: %s failed", hook)
        if self._thread is not None:
            self.scheduling.failures["internal"] += 1

    @classmethod
    def requires_piecewise_for_cudagraph(cls, extra_config: dict[str, Any]) -> bool:
        return bool(extra_config.get("by_layer"))

    @property
    def requires_kv_delivery(self) -> bool:
        return False

    # In a worker.

    def register_kv_caches(self, kv_caches: dict[str, Any]) -> None:
        self._working.begin(kv_caches, self._blocks)

    def get_handshake_metadata(self) -> Told:
        return Told(self._working.told())

    @_guarded()
    def handle_preemptions(self, kv_connector_metadata: Orders) -> None:
        self._working.before_step(kv_connector_metadata.orders)

    @_guarded()
    def start_load_kv(self, forward_context: Any, **kwargs: Any) -> None:
        self._working.before_step(self._orders)

    def wait_for_layer_load(self, layer_name: str) -> None:
        pass

    @_guarded()
    def save_kv_layer(
        self, layer_name: str, kv_layer: Any, attn_metadata: Any, **kwargs: Any
    ) -> None:
        self._working.layer_done(self._orders, layer_name)

    @_guarded()
    def wait_for_save(self) -> None:
        self._working.step_done(self._orders)

    @_guarded(lambda: (None, None))
    def get_finished(self, finished_req_ids: set[str]) -> tuple[set[str] | None, set[str] | None]:
        return self._working.ended(), None

    @property
    def _orders(self) -> StepOrders:
        metadata: Any = self._connector_metadata
        orders: StepOrders = metadata.orders
        return orders

    # In the scheduler.

    def set_xfer_handshake_metadata(self, metadata: dict[int, Told]) -> None:
        workers = [metadata[rank].worker for rank in sorted(metadata)]
        self._links = [control.connected(one["name"], one["secret"]) for one in workers]
        self.scheduling.know(workers, self._links)

    def asked(self, engine: Any, operation: str, asked: dict[str, Any]) -> Any:
        """A call of the frontend's, on the engine's thread."""
        if self._thread is None:
            self._attach(engine)
        return getattr(self.scheduling, operation)(asked)

    def _attach(self, engine: Any) -> None:
        thread = self._thread = core.Thread()
        alarm = core.Alarm(thread.leave, self.scheduling.tick)
        self.scheduling.attach(engine, alarm.set)
        for rank, link in enumerate(self._links):
            link.listen(partial(self._hear, thread, rank), "kv-workers")
        thread.attach(engine)

    def _hear(self, thread: core.Thread, rank: int, message: control.Message) -> None:
        thread.leave(partial(self.scheduling.heard, rank, message))

    def get_num_new_matched_tokens(
        self, request: Any, num_computed_tokens: int
    ) -> tuple[int, bool]:
        return 0, False  # what has come is found as any prefix

    @_guarded()
    def on_new_request(self, request: Any) -> None:
        self.scheduling.claimed(request)

    @_guarded()
    def update_state_after_alloc(self, request: Any, blocks: Any, num_external_tokens: int) -> None:
        self.scheduling.tracks.allocated(request)
        self.scheduling.used(request)

    @_guarded(lambda: Orders(StepOrders()))
    def build_connector_meta(self, scheduler_output: Any) -> Orders:
        return Orders(self.scheduling.tracks.step(scheduler_output, self._kv_cache_manager))

    @_guarded(lambda: (False, None))
    def request_finished(self, request: Any, block_ids: list[int]) -> tuple[bool, None]:
        stays = self.scheduling.tracks.finished(request)
        self.scheduling.used(request)
        return stays, None

    def reset_cache(self) -> bool:
        return True  # nothing is kept beside vLLM's own

    def shutdown(self) -> None:
        if self.role is KVConnectorRole.WORKER:
            self._working.close()
        else:
            for link in self._links:
                link.close()
