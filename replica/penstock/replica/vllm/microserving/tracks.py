"""What of the requests whose KV goes elsewhere has been handed to the workers: the scheduler's
half of sending. Its requests are vLLM's, used by their attributes alone."""

from __future__ import annotations

import logging
import threading
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from penstock.replica.vllm.microserving.orders import SEND, StepOrders, StepSend, Target, target_of

log = logging.getLogger(__name__)


class Reports:
    """What became of each transfer, by all ranks, and who waits for it. From any thread."""

    def __init__(self, ranks: int) -> None:
        self._ranks = ranks
        self._lock = threading.Lock()
        self._waiting: dict[str, Future[dict[str, Any]]] = {}
        self._parts: dict[str, list[dict[str, Any]]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def wait(self, job: str) -> Future[dict[str, Any]]:
        """Of a transfer that is to begin."""
        future: Future[dict[str, Any]] = Future()
        with self._lock:
            self._waiting[job] = future
            self._parts[job] = []
        return future

    def add(self, job: str, told: dict[str, Any]) -> dict[str, Any] | None:
        """A rank has done its part; all of it, once all have."""
        with self._lock:
            parts = self._parts.get(job)
            if parts is None:
                return None
            parts.append(told)
            broken = next((part for part in parts if part["error"]), None)
            if len(parts) < self._ranks and broken is None:
                return None
            whole = {
                "error": broken["error"] if broken else "",
                "message": broken["message"] if broken else "",
                "bytes": sum(part["bytes"] for part in parts),
                "seconds": max(part["seconds"] for part in parts),
            }
            self._settle(job, whole)
            return whole

    def fail(self, job: str, why: str) -> None:
        """It will not be."""
        told = {"error": "transfer", "message": why, "bytes": 0, "seconds": 0.0}
        with self._lock:
            self._settle(job, told)

    def _settle(self, job: str, told: dict[str, Any]) -> None:
        self._parts.pop(job, None)
        future = self._waiting.pop(job, None)
        if future is not None:
            future.set_result(told)


@dataclass(slots=True)
class _Track:
    """A request. `next`: the first block that no worker has been told of."""

    target: Target
    next: int
    begun: bool = False
    done: bool = False


class Tracks:
    """Of all requests that are being sent. On the engine's thread."""

    def __init__(self, block_size: int, reports: Reports) -> None:
        self._block_size = block_size
        self._reports = reports
        self._tracks: dict[str, _Track] = {}
        self._orders = StepOrders()

    def allocated(self, request: Any) -> None:
        """A request is about to run."""
        told = (request.kv_transfer_params or {}).get(SEND)
        if told and request.request_id not in self._tracks:
            target = target_of(told)
            self._tracks[request.request_id] = _Track(target, target.begin)

    def step(self, scheduled: Any, manager: Any) -> StepOrders:
        """What the workers are to do with this step."""
        orders, self._orders = self._orders, StepOrders()
        if self._tracks:
            try:
                self._follow(orders, scheduled, manager)
            except Exception:
                log.exception("what is sent cannot be followed; it is given up")
                orders.sends.clear()
                orders.dropped += self._tracks
                for track in self._tracks.values():
                    track.done = True
        return orders

    def _follow(self, orders: StepOrders, scheduled: Any, manager: Any) -> None:
        for request_id in scheduled.preempted_req_ids or ():
            if (track := self._tracks.get(request_id)) is not None:
                track.next, track.done = track.target.begin, False
                orders.preempted.append(request_id)
        before = {one.req_id: one.num_computed_tokens for one in scheduled.scheduled_new_reqs}
        running = scheduled.scheduled_cached_reqs
        before.update(zip(running.req_ids, running.num_computed_tokens, strict=True))
        for request_id, track in self._tracks.items():
            tokens = scheduled.num_scheduled_tokens.get(request_id)
            if tokens and not track.done:
                blocks = manager.get_block_ids(request_id)[0]
                send = self._send(request_id, track, before[request_id], tokens, blocks)
                orders.sends.append(send)

    def _send(
        self, request_id: str, track: _Track, before: int, tokens: int, blocks: list[int]
    ) -> StepSend:
        target = track.target
        computed = min((before + tokens) // self._block_size, target.end)
        pairs = [(blocks[at], at - target.first) for at in range(track.next, computed)]
        track.next = max(track.next, computed)
        track.begun, track.done = True, track.next >= target.end
        return StepSend(request_id, target, pairs, track.done)

    def finished(self, request: Any) -> bool:
        """A request has ended; whether its blocks have to stay until the workers have sent them."""
        track = self._tracks.pop(request.request_id, None)
        told = (request.kv_transfer_params or {}).get(SEND)
        if track is None or not track.begun:
            if told:
                self._reports.fail(str(told.get("job")), "its request ended before it was computed")
            return False
        self._orders.ended.append(request.request_id)
        if not track.done:
            self._orders.dropped.append(request.request_id)
        return True
