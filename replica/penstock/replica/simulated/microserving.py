"""MicroServing of the simulated engine: leases, and a prefix cache of hashes, without any KV.

What it moves takes time on a real connection (`kv_transfer.py`), so that a peer that dies or hangs
is seen as with a real engine. The prefix cache is the native engine's.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import secrets
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from penstock.replica import _server
from penstock.replica.calls import wire
from penstock.replica.microserving.leases import MOST_LEASED, Ended, Lease, LeaseTable
from penstock.replica.microserving.values import (
    Committed,
    Found,
    KvAddress,
    KvRank,
    MicroServingError,
    MicroServingFigures,
    Prepared,
    Prompt,
    Sending,
    Sent,
    Tokenized,
)
from penstock.replica.simulated import kv_transfer
from penstock.replica.simulated.kv_transfer import Offer, Pace
from penstock.replica.values import Call, KvHint
from penstock.v1 import common_pb2

BLOCK: Final = 16
"""Tokens of a block; as in native/simulated/prefix_cache.h."""

_UNBOUND: Final = 65_536  # blocks, where the engine simulates none

Prefill = Callable[[Sending, int], Coroutine[Any, Any, int]]
"""Computes so many tokens of the prompt; returns how many were cached."""


@dataclass(frozen=True, slots=True)
class KvSettings:
    """Of a simulated engine: its pool, and how its KV moves."""

    blocks: int  # 0: not simulated
    pace: Pace
    fingerprint: str
    host: str  # where it takes KV


@dataclass(slots=True)
class _Incoming:
    """What a lease is for."""

    hashes: list[int]  # of the blocks up to its end
    matched: int  # blocks that were there before
    nonce: bytes
    arrived: int = 0  # blocks since
    closed: bool = False  # to senders
    writer: asyncio.StreamWriter | None = None  # of who sends now

    @property
    def here(self) -> list[int]:
        return self.hashes[: self.matched + self.arrived]

    def close(self) -> None:
        self.closed = True
        if self.writer is not None:
            self.writer.close()


@dataclass(slots=True)
class _Totals:
    transfers: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    seconds_in: float = 0.0
    seconds_out: float = 0.0
    failures: Counter[str] = field(default_factory=Counter)


class SimulatedMicroServing:
    """See `MicroServing`. `changed` is told of what `figures` has."""

    def __init__(
        self,
        native: _server.SimulatedEngine,
        settings: KvSettings,
        prefill: Prefill,
        changed: Callable[[], None],
    ) -> None:
        self._native = native
        self._settings = settings
        self._prefill = prefill
        self._changed = changed
        self._pool = settings.blocks or _UNBOUND
        self._leases: LeaseTable[_Incoming] = LeaseTable(int(self._pool * MOST_LEASED))
        self._ended = Ended()
        self._totals = _Totals()
        self._listener: asyncio.Server | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._port = 0

    async def start(self) -> None:
        """Takes KV from now on."""
        host = self._settings.host
        self._listener = await asyncio.start_server(self._receive, host, 0, limit=4096)
        self._port = self._listener.sockets[0].getsockname()[1]

    def stop(self) -> None:
        """Takes no more."""
        self.forget()
        if self._listener is not None:
            self._listener.close()

    async def tokenize(self, call: Call) -> Tokenized:
        """See `MicroServing`."""
        ids, error = self._native.tokenize(wire.request_of(call).SerializeToString())
        if error:
            raise self._failed("bad_request", common_pb2.ErrorDetail.FromString(error).message)
        prompt = Prompt(ids, call.adapter, call.adapter_digest, call.tenant_salt)
        return Tokenized(prompt, len(ids), BLOCK, tuple(_hashes(prompt)))

    async def prep_recv(self, prompt: Prompt, end: int, seq_id: str, ttl_ms: int) -> Prepared:
        """See `MicroServing`."""
        self._expire()
        hashes = _hashes(prompt)[: end // BLOCK]
        lease = self._leases.find(seq_id)
        if lease is None:
            lease = self._open(hashes, seq_id, ttl_ms)
        elif lease.held.hashes != hashes or lease.held.closed:
            raise self._failed("bad_request", f"the lease {seq_id!r} is of another prompt or done")
        else:
            lease.renew(time.monotonic())
        self._told()
        return self._prepared(lease)

    def _open(self, hashes: list[int], seq_id: str, ttl_ms: int) -> Lease[_Incoming]:
        matched = self._native.matched_blocks(hashes)
        blocks = len(hashes) - matched
        if blocks > self._free():
            raise self._failed("no_kv_capacity", f"{blocks} blocks are not free")
        incoming = _Incoming(hashes, matched, secrets.token_bytes(16))
        with self._counted():
            return self._leases.open(seq_id, blocks, ttl_ms, incoming, time.monotonic())

    def _prepared(self, lease: Lease[_Incoming]) -> Prepared:
        held = lease.held
        address = KvAddress(
            lease.seq_id,
            held.nonce,
            held.matched,
            lease.blocks,
            BLOCK,
            self._settings.fingerprint,
            (KvRank(self._settings.host, self._port),),
        )
        return Prepared(address, held.matched * BLOCK, len(held.hashes) * BLOCK)

    async def remote_send(self, sending: Sending) -> Sent:
        """See `MicroServing`."""
        address = sending.kv_addr
        if address.fingerprint != self._settings.fingerprint:
            raise self._failed("fingerprint", "the engines' models or versions differ")
        first = max(sending.begin // BLOCK, address.first_block)
        blocks = min(sending.end // BLOCK, address.first_block + address.blocks) - first
        cached = await self._prefill(sending, (first + max(blocks, 0)) * BLOCK)
        if blocks <= 0:
            return Sent(0, 0, 0, cached)
        pace = self._settings.pace
        began = time.monotonic()
        with self._counted(), self._under_way():
            to = address.ranks[sending.recv_rank]
            await kv_transfer.send(address, to, first, blocks, pace)
        took = time.monotonic() - began
        self._totals.bytes_out += (moved := blocks * pace.bytes_per_block)
        self._totals.seconds_out += took
        return Sent(blocks * BLOCK, moved, int(took * 1e6), cached)

    async def commit(self, seq_id: str) -> Committed:
        """See `MicroServing`."""
        self._expire()
        lease = self._leases.find(seq_id)
        if lease is None:
            raise self._failed("no_lease", f"there is no lease {seq_id!r}, or it has expired")
        lease.held.close()
        self._native.add_blocks(lease.held.here)
        cached = self._native.matched_blocks(lease.held.hashes)
        return Committed(cached * BLOCK, lease.held.matched * BLOCK)

    async def release(self, seq_id: str) -> None:
        """See `MicroServing`."""
        if lease := self._leases.end(seq_id):
            lease.held.close()
            self._native.add_blocks(lease.held.here)
            self._ended.note(seq_id, lease.held.arrived * BLOCK)
        self._told()

    async def lookup(self, prompt: Prompt) -> Found:
        """See `MicroServing`."""
        matched = self._native.matched_blocks(_hashes(prompt))
        return Found(matched * BLOCK, BLOCK, max(0, self._free()))

    def figures(self) -> MicroServingFigures:
        """See `MicroServing`."""
        self._expire()
        totals = self._totals
        return MicroServingFigures(
            len(self._leases),
            self._leases.blocks,
            totals.transfers,
            totals.bytes_in,
            totals.bytes_out,
            totals.seconds_in,
            totals.seconds_out,
            dict(totals.failures),
        )

    async def hint_for(self, kv: KvHint) -> KvHint:
        """Commits the lease of a call that begins; what was moved for it."""
        with contextlib.suppress(MicroServingError):
            done = await self.commit(kv.seq_id)
            return KvHint(kv.seq_id, kv.begin, max(0, done.cached_len - done.matched_len))
        return replace(kv, moved_tokens=max(kv.moved_tokens, self._ended.tokens(kv.seq_id)))

    def forget(self) -> None:
        """Ends all leases: the engine's memory goes."""
        for lease in list(self._leases):
            self._leases.end(lease.seq_id)
            lease.held.close()
        self._native.forget_blocks()
        self._told()

    def _free(self) -> int:
        return self._pool - self._native.figures()[3] - self._leases.blocks

    def _expire(self) -> None:
        for lease in self._leases.expire(time.monotonic()):
            lease.held.close()

    def _told(self) -> None:
        """Leases have changed: who counts blocks is told, and looks again when one is over."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._native.set_leased(self._leases.blocks)
        self._changed()
        if (end := self._leases.next_end()) is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(0.0, end - time.monotonic()), self._look_again)

    def _look_again(self) -> None:
        self._expire()
        self._told()

    async def _receive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with self._under_way():
                await self._take(reader, writer)
        except MicroServingError as error:
            kv_transfer.write_word(writer, {"cause": error.cause, "message": error.message})
        except (OSError, TimeoutError):
            self._totals.failures["transfer"] += 1
        finally:
            writer.close()

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        offer = kv_transfer.offer_of(await kv_transfer.read_word(reader))
        lease = self._admitted(offer)
        held = lease.held
        held.writer = writer
        began, before = time.monotonic(), offer.first - held.matched
        kv_transfer.write_word(writer, {"ok": True})
        while (done := held.arrived - before) < offer.blocks:
            word = await kv_transfer.read_word(reader, lease.ttl)
            if held.closed:
                raise MicroServingError("no_lease", "the lease has ended")
            arrived = word.get("arrived")
            if not isinstance(arrived, int) or not done < arrived <= offer.blocks:
                raise MicroServingError("bad_request", "more or less arrived than was told")
            held.arrived = before + arrived
            self._totals.bytes_in += (arrived - done) * self._settings.pace.bytes_per_block
            lease.renew(time.monotonic())
        held.writer = None
        self._totals.seconds_in += time.monotonic() - began
        kv_transfer.write_word(writer, {"done": True})

    def _admitted(self, offer: Offer) -> Lease[_Incoming]:
        """The lease that a sender means."""
        self._expire()
        lease = self._leases.find(offer.lease)
        if lease is None or not hmac.compare_digest(lease.held.nonce, offer.nonce):
            raise self._failed("no_lease", "there is no such lease")
        held = lease.held
        if held.closed or held.writer is not None:
            raise self._failed("no_lease", "the lease takes no more, or takes it from another")
        if offer.fingerprint != self._settings.fingerprint:
            raise self._failed("fingerprint", "the engines' models or versions differ")
        first = held.matched + held.arrived
        if not held.matched <= offer.first <= first:
            raise self._failed("bad_request", f"block {first} is the next, not {offer.first}")
        if not 0 < offer.blocks <= len(held.hashes) - offer.first:
            raise self._failed("bad_request", f"{offer.blocks} blocks are not leased")
        held.arrived = offer.first - held.matched
        return lease

    @contextlib.contextmanager
    def _under_way(self) -> Iterator[None]:
        self._totals.transfers += 1
        self._changed()
        try:
            yield
        finally:
            self._totals.transfers -= 1
            self._changed()

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        try:
            yield
        except MicroServingError as error:
            self._totals.failures[error.cause] += 1
            raise

    def _failed(self, cause: Any, message: str) -> MicroServingError:
        self._totals.failures[cause] += 1
        return MicroServingError(cause, message)


def _hashes(prompt: Prompt) -> list[int]:
    return _server.block_hashes(
        prompt.token_ids, prompt.adapter, prompt.adapter_digest, prompt.tenant_salt
    )
