"""The connector's half in the engine's own process: leases, and what becomes of them.

Everything here runs on the engine's thread, between two steps or as one is planned, and waits for
nobody: workers are told by messages that are sent or not, and what they answer comes back through
`core.py`, as does the time. Who waits for an answer is given a future.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final

from penstock.replica.microserving.leases import MOST_LEASED, Ended, bounded_ttl
from penstock.replica.vllm.microserving import ghosts
from penstock.replica.vllm.microserving.control import Link
from penstock.replica.vllm.microserving.leases import Lease, Leases, State
from penstock.replica.vllm.microserving.orders import LEASE
from penstock.replica.vllm.microserving.prompts import placed
from penstock.replica.vllm.microserving.tracks import Reports, Tracks

log = logging.getLogger(__name__)

Answer = dict[str, Any]

_IN_ONE_MESSAGE: Final = 4096  # blocks


class Scheduling:
    """Of one engine. `core` is known from the first call on."""

    def __init__(self, block_size: int, blocks: int) -> None:
        self._block_size = block_size
        self._most = int(blocks * MOST_LEASED)
        self._core: Any = None
        self._alarm: Callable[[float | None], None] = _nobody
        self._ranks: list[dict[str, Any]] = []
        self._links: list[Link] = []
        self._leases = Leases(self._most, 1)
        self.reports = Reports(1)
        self.tracks = Tracks(block_size, self.reports)
        self.failures: Counter[str] = Counter()
        self._moved = {"bytes_in": 0, "bytes_out": 0, "seconds_in": 0.0, "seconds_out": 0.0}
        self._incoming: set[str] = set()
        self._ended = Ended()
        self._asking: Future[Answer] | None = None
        self._emptying: list[Future[Answer]] = []
        self._asleep = False

    def know(self, ranks: list[dict[str, Any]], links: list[Link]) -> None:
        """The workers are there."""
        self._ranks, self._links = ranks, links
        self._leases = Leases(self._most, len(ranks))
        self.reports = Reports(len(ranks))
        self.tracks = Tracks(self._block_size, self.reports)

    def attach(self, core: Any, alarm: Callable[[float | None], None]) -> None:
        """The engine that all of it is about; `alarm` has `tick` called at that time."""
        self._core, self._alarm = core, alarm

    # What is asked ------------------------------------------------------------------------------

    def describe(self, _: Answer) -> Answer:
        """What others must have alike, and where each rank takes KV."""
        ranks = [{"host": one["host"], "port": one["port"]} for one in self._ranks]
        layouts = [[one["layout"], one["block_bytes"]] for one in self._ranks]
        return {"ranks": ranks, "layouts": layouts, "block_size": self._block_size}

    def lookup(self, asked: Answer) -> Answer:
        """Tokens of a prompt that are here."""
        request = ghosts.request_for(self._core, asked, len(asked["tokens"]), "penstock-lookup")
        _, tokens = ghosts.found(self._core, request)
        pool = self._core.scheduler.kv_cache_manager.block_pool
        return {"matched": tokens, "free": pool.get_num_free_blocks()}

    def prep_recv(self, asked: Answer) -> Answer:
        """Leases blocks; of a lease that stands, renews it."""
        now = time.monotonic()
        seq_id, ttl = asked["seq_id"], bounded_ttl(asked["ttl_ms"])
        if (lease := self._leases.find(seq_id)) is not None and not lease.ending:
            if lease.told["fingerprint"] != asked["fingerprint"]:
                return self._failed("bad_request", f"lease {seq_id} is of another prompt")
            self._leases.renew(lease, now, ttl)
            self._watch()
            told: Answer = lease.told
            return told
        if self._asleep or lease is not None:
            return self._failed("no_kv_capacity", "the engine is giving its blocks back")
        return self._lease(asked, seq_id, now, ttl)

    def _lease(self, asked: Answer, seq_id: str, now: float, ttl: float) -> Answer:
        end = asked["end"] // self._block_size * self._block_size
        pinned = end // self._block_size
        if not self._leases.has_room(pinned):
            held = f"{self._leases.blocks} of {self._most}"
            return self._failed("no_kv_capacity", f"{held} blocks that may be are leased")
        ghost = ghosts.request_for(self._core, asked, end, f"penstock-lease-{seq_id}")
        here, matched = ghosts.found(self._core, ghost)
        blocks = ghosts.allocated(self._core, ghost, here, matched, end)
        if blocks is None:
            return self._failed("no_kv_capacity", f"there are no {pinned} free blocks")
        nonce = secrets.token_hex(32)
        told = {
            "nonce": nonce,
            "fingerprint": asked["fingerprint"],
            "first": matched // self._block_size,
            "blocks": len(blocks),
            "matched": matched,
            "end": end,
        }
        lease = Lease(seq_id, ghost, told, pinned, matched, end, ttl, now, now + ttl)
        lease.cached = matched
        self._leases.add(lease)
        if blocks and not self._open(lease, blocks):
            self._end(lease)
            return self._failed("transfer", "a worker of the engine does not listen")
        if not blocks:  # nobody needs to write
            lease.state = State.CLOSED
        ghosts.told(self._core)
        self._changed()
        self._watch()
        return told

    def _open(self, lease: Lease, blocks: list[int]) -> bool:
        order = {
            "open": lease.seq_id,
            "nonce": lease.told["nonce"],
            "fingerprint": placed(lease.told["fingerprint"], lease.told["first"]),
            "ttl": lease.ttl,
            "count": len(blocks),
        }
        pieces = range(0, len(blocks), _IN_ONE_MESSAGE)
        return all(
            link.send({**order, "blocks": blocks[at : at + _IN_ONE_MESSAGE]})
            for link in self._links
            for at in pieces
        )

    def commit(self, asked: Answer) -> Answer | Future[Answer]:
        """Closes a lease, and has what has come found by others; it stays pinned."""
        lease = self._leases.find(asked["seq_id"])
        if lease is None:
            return {"error": "no_lease", "message": f"there is no lease {asked['seq_id']}"}
        lease.until = max(lease.until, time.monotonic() + lease.ttl)
        if lease.state is State.CLOSED:
            return _committed(lease)
        future: Future[Answer] = Future()
        lease.waiting.append(future)
        self._close(lease)
        return future

    def release(self, asked: Answer) -> Answer:
        """Ends a lease; what has come is found by others first."""
        if (lease := self._leases.find(asked["seq_id"])) is not None:
            self._end(lease)
        return {}

    def ended(self, asked: Answer) -> Answer:
        """Tokens that came by a lease that is there no more."""
        return {"tokens": self._ended.tokens(asked["seq_id"])}

    def release_all(self, asked: Answer) -> Answer | Future[Answer]:
        """Ends all of them, and until `asked["asleep"]` is over begins none; answers once no block
        is pinned any more."""
        self._asleep = asked["asleep"]
        for lease in self._leases:
            self._end(lease)
        if not len(self._leases):
            return {}
        self._emptying.append(Future())
        return self._emptying[-1]

    def wait_send(self, asked: Answer) -> Future[Answer]:
        """What will have become of a transfer."""
        self._changed()
        return self.reports.wait(asked["job"])

    def drop_send(self, asked: Answer) -> Answer:
        """Nobody waits for it any more."""
        self.reports.fail(asked["job"], "it is not wanted any more")
        self._changed()
        return {}

    def figures(self, asked: Answer) -> Answer | Future[Answer]:
        """The figures, once they are others than those that are shown."""
        told = self._figures()
        if told != asked["seen"]:
            return told
        if self._asking is not None and not self._asking.done():
            self._asking.set_result(told)
        self._asking = Future()
        return self._asking

    def _figures(self) -> Answer:
        transfers = len(self._incoming) + len(self.reports)
        held = {"leases": len(self._leases), "leased_blocks": self._leases.blocks}
        failures = dict(self.failures)
        return {**held, "transfers": transfers, **self._moved, "failures": failures}

    def _changed(self) -> None:
        if self._asking is not None and not self._asking.done():
            self._asking.set_result(self._figures())

    # What workers say, and the time -------------------------------------------------------------

    def heard(self, rank: int, message: Answer) -> None:
        """What a worker has said."""
        if "sent" in message:
            whole = self.reports.add(message["sent"], message)
            if whole is not None:
                self._moved["bytes_out"] += whole["bytes"]
                self._moved["seconds_out"] += whole["seconds"]
                self.failures.update([whole["error"]] if whole["error"] else [])
        else:
            key = next(one for one in ("moved", "finished", "stopped") if one in message)
            lease = self._leases.find(message[key])
            # One of the same name may have come and gone before it.
            if lease is not None and lease.told["nonce"] == message["nonce"]:
                getattr(self, f"_heard_{key}")(lease, rank, message)
        self._changed()
        self._watch()

    def _heard_moved(self, lease: Lease, rank: int, message: Answer) -> None:
        del rank, message
        self._incoming.add(lease.seq_id)
        self._leases.moved(lease, time.monotonic())

    def _heard_finished(self, lease: Lease, rank: int, message: Answer) -> None:
        del message
        if self._leases.finish(lease, rank):
            self._close(lease)

    def _heard_stopped(self, lease: Lease, rank: int, message: Answer) -> None:
        self._moved["bytes_in"] += message["bytes"]
        self._moved["seconds_in"] += message["seconds"]
        blocks = self._leases.stop(lease, rank, message["blocks"])
        if blocks is None:
            return
        self._incoming.discard(lease.seq_id)
        if blocks:
            lease.cached = lease.matched + blocks * self._block_size
            ghosts.cached(self._core, lease.holder, lease.cached)
        if lease.ending:
            self._free(lease)
        self._answer(lease)

    def tick(self) -> None:
        """The time has come that was asked for."""
        over, late, lost = self._leases.due(time.monotonic())
        for lease in over:
            log.info("lease %s ends by its time", lease.seq_id)
            self.failures.update(["expired"] if lease.state is State.OPEN else [])
            self._end(lease)
        for lease in late:
            self.failures["quarantine"] += 1
            self._tell_close(lease)
            self._answer(lease)
        for lease in lost:
            log.error("a worker does not say that lease %s is closed", lease.seq_id)
            self._free(lease)
        self._changed()
        self._watch()

    # A lease's way ------------------------------------------------------------------------------

    def claimed(self, request: Any) -> None:
        """The request that a lease is for is queued: its blocks wait with it."""
        if (lease := self._of(request)) is not None:
            self._leases.claim(lease, time.monotonic())
            self._watch()

    def used(self, request: Any) -> None:
        """It is scheduled, or gone: the lease ends."""
        if (lease := self._of(request)) is not None:
            self._end(lease)

    def _of(self, request: Any) -> Lease | None:
        name = (request.kv_transfer_params or {}).get(LEASE)
        return self._leases.find(name) if name else None

    def _close(self, lease: Lease) -> None:
        if self._leases.close(lease, time.monotonic()):
            self._tell_close(lease)
            self._watch()

    def _tell_close(self, lease: Lease) -> None:
        for link in self._links:
            link.send({"close": lease.seq_id, "nonce": lease.told["nonce"]})

    def _end(self, lease: Lease) -> None:
        lease.ending = True
        if lease.state is State.CLOSED:
            self._free(lease)
        else:
            self._close(lease)
        self._changed()

    def _free(self, lease: Lease) -> None:
        if self._leases.remove(lease):
            self._incoming.discard(lease.seq_id)
            ghosts.freed(self._core, lease.holder, lease.end)
            ghosts.told(self._core)
            self._ended.note(lease.seq_id, lease.cached - lease.matched)
            self._answer(lease)
        while self._emptying and not len(self._leases):
            self._emptying.pop().set_result({})

    def _answer(self, lease: Lease) -> None:
        waiting, lease.waiting = lease.waiting, []
        for future in waiting:
            future.set_result(_committed(lease))

    def _watch(self) -> None:
        self._alarm(self._leases.next_due())

    def _failed(self, cause: str, message: str) -> Answer:
        self.failures[cause] += 1
        return {"error": cause, "message": message}


def _committed(lease: Lease) -> Answer:
    return {"cached": lease.cached, "matched": lease.matched}


def _nobody(_: float | None) -> None:
    """Stands in until an engine is attached."""
