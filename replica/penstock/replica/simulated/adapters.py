"""The simulated engine's adapters: loads that take a time and may fail, of any bytes or none.

An adapter changes the words of an answer by its name and its digest. With a node agent its bytes
are asked for as a real engine does; without one none are needed.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from penstock.adapters.version import BadManifest
from penstock.replica import _server
from penstock.replica.adapters.content import content_digest
from penstock.replica.adapters.table import AdapterTable
from penstock.replica.adapters.values import AdapterUnavailable, Code, Contents, Prepared, Use
from penstock.replica.calls import wire
from penstock.replica.calls.inbox import Inbox, Kind
from penstock.replica.default_model import shipped
from penstock.replica.owned_tasks import OwnedTasks
from penstock.replica.values import AdapterSource, CannotLoad, EngineError
from penstock.v1 import inference_pb2

_SCALE: Final = 1 << 64


def share_that_fails(text: str) -> float | None:
    """The setting `fail_adapter_loads` as a share; None: it is a list of names. Raises `CannotLoad`
    for a number that is no share."""
    try:
        share = float(text or "0")
    except ValueError:
        return None
    if not 0 <= share <= 1:
        raise CannotLoad(
            f"fail_adapter_loads is {text!r}: it must be a share from 0 to 1, or names"
        )
    return share


class SimulatedWeights:
    """`Weights` of the native engine. `load_ms`: what a load takes; `failing`: which ones fail, as
    a share of the tries or as names with commas between."""

    def __init__(
        self,
        native: _server.SimulatedEngine,
        inbox: Inbox,
        contents: Contents | None,
        load_ms: int = 0,
        failing: str = "",
    ) -> None:
        self._native = native
        self._contents = contents
        self._load_s = load_ms / 1000
        self._share = share_that_fails(failing)
        self._failing = frozenset(failing.split(","))
        self._tries: Counter[str] = Counter()
        self._tell: Callable[[], None] = lambda: None
        inbox.listen(Kind.IDLE, lambda *_: self._tell())

    async def prepare(self, adapter: AdapterSource) -> Prepared:
        """See `Weights`."""
        digest = await self._digest(adapter)
        if adapter.digest and digest != adapter.digest:
            raise CannotLoad(
                f"adapter {adapter.name}: its bytes have sha256 {digest}, it is to be "
                f"{adapter.digest}"
            )
        await asyncio.sleep(self._load_s)
        self._tries[adapter.name] += 1
        if self._is_to_fail(adapter.name):
            raise EngineError(f"adapter {adapter.name}: it is to fail (fail_adapter_loads)")
        return Prepared(replace(adapter, digest=digest), None)

    async def add(self, prepared: Prepared) -> None:
        """See `Weights`; calls that waited for it go on."""
        self._native.add_adapter(prepared.name, prepared.adapter.digest)

    async def remove(self, name: str) -> bool:
        """See `Weights`."""
        return self._native.remove_adapter(name)

    def close(self, name: str) -> None:
        """See `Weights`."""
        self._native.close_adapter(name)

    def reopen(self, name: str) -> None:
        """See `Weights`."""
        self._native.reopen_adapter(name)

    def uses(self) -> Mapping[str, Use]:
        """See `Weights`."""
        now = time.monotonic()
        return {name: Use(calls, now - idle) for name, calls, idle in self._native.adapter_uses()}

    def tell_when_idle(self, names: Collection[str], tell: Callable[[], None]) -> None:
        """See `Weights`."""
        self._tell = tell
        self._native.tell_when_idle(set(names))

    async def _digest(self, adapter: AdapterSource) -> str:
        if not adapter.source:
            if self._contents is not None:
                await self._contents.directory(adapter.digest)
            return adapter.digest
        directory = shipped(adapter.source) or Path(adapter.source)
        try:
            return await asyncio.to_thread(content_digest, directory)
        except (OSError, BadManifest):
            # Any source will do: what differs has other words.
            return adapter.digest or hashlib.sha256(adapter.source.encode()).hexdigest()

    def _is_to_fail(self, name: str) -> bool:
        if self._share is None:
            return name in self._failing
        toss = hashlib.sha256(f"{name} {self._tries[name]}".encode()).digest()[:8]
        return int.from_bytes(toss) < self._share * _SCALE


class WantedAdapters:
    """Loads what calls wait for in the native engine, and tells it where that fails."""

    def __init__(self, native: _server.SimulatedEngine, table: AdapterTable, inbox: Inbox) -> None:
        self._native = native
        self._table = table
        self._tasks = OwnedTasks()
        inbox.listen(Kind.WANTED, self._hear)

    def _hear(self, _: int, payload: bytes) -> None:
        wanted = inference_pb2.CallRequest.FromString(payload)
        adapter = AdapterSource(wanted.adapter, digest=wanted.adapter_digest)
        self._tasks.spawn(self._bring(adapter, wanted.adapter_wait_ms / 1000))

    def close(self) -> None:
        """Loads no more."""
        self._tasks.close()

    async def _bring(self, adapter: AdapterSource, wait: float) -> None:
        try:
            await self._table.load(adapter, wait=wait)
        except AdapterUnavailable as error:
            detail = wire.error_detail(error.failed).SerializeToString()
            all_of_them = bool(wait) or error.code is not Code.SLOTS_FULL
            self._native.fail_parked(adapter.name, adapter.digest, detail, all_of_them)
