"""vLLM's LoRA, as the adapter table moves it: an adapter in, an adapter out, and who uses it.

An adapter that leaves the engine while a request runs with it is read again from its files inside
an engine step, and a file that is gone by then ends the engine. So a call counts from before vLLM
looks its adapter up until vLLM has finished or aborted it.

Imports vLLM only inside functions.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final

from penstock.adapters.fitness import FamilyLimits
from penstock.replica.adapters.content import directory_of
from penstock.replica.adapters.values import Contents, Prepared, Use
from penstock.replica.values import AdapterSource, EngineError
from penstock.replica.vllm.lora.adapter_files import look_at
from penstock.replica.vllm.start import causes

log = logging.getLogger(__name__)

_LOOK_AGAIN_S: Final = 0.05


class VllmWeights:
    """`Weights` of one vLLM engine."""

    def __init__(self, contents: Contents | None) -> None:
        self.limits = FamilyLimits()  # what the engine takes, as far as it is known
        self._contents = contents
        self._llm: Any = None
        self._requests: dict[str, Any] = {}  # vLLM's, by adapter name
        # Never given twice: vLLM takes a second adapter of one id for the first.
        self._ids = itertools.count(1)
        self._calls: dict[str, int] = {}
        self._last: dict[str, float] = {}
        self._awaited: frozenset[str] = frozenset()
        self._tell: Callable[[], None] = lambda: None

    def open(self, llm: Any, models: Any, limits: FamilyLimits) -> None:
        """The engine is up; `models` is vLLM's table of names."""
        self._llm, self._requests, self.limits = llm, models.lora_requests, limits

    async def prepare(self, adapter: AdapterSource) -> Prepared:
        """See `Weights`."""
        directory = await directory_of(adapter, self._contents)
        return await asyncio.to_thread(look_at, adapter, directory, self.limits)

    async def add(self, prepared: Prepared) -> None:
        """See `Weights`. What vLLM adds it pins: of its own accord it puts out none."""
        from vllm.lora.request import LoRARequest

        # The prefix cache keeps blocks by this name and path (`_gen_lora_extra_hash_keys` in
        # vllm/v1/core/kv_cache_utils.py): with the digest in it, never those of other bytes.
        name = f"{prepared.name}:{prepared.adapter.digest}"
        request = LoRARequest(name, next(self._ids), str(prepared.directory))
        try:
            if not await self._llm.add_lora(request):
                raise EngineError("the engine did not take it")
            await self._llm.pin_lora(request.lora_int_id)
        except Exception as error:
            # vLLM knows the id before it has all of the weights, and would call that loaded.
            with contextlib.suppress(Exception):
                await self._llm.remove_lora(request.lora_int_id)
            cause = causes.shortened(str(error) or type(error).__name__)
            raise EngineError(f"adapter {prepared.name}: {cause}") from error
        self._requests[prepared.name] = request
        self._calls[prepared.name] = 0
        self._last[prepared.name] = time.monotonic()

    def request(self, name: str) -> Any:
        """vLLM's request of an adapter; none: it is not held."""
        return self._requests.get(name)

    async def remove(self, name: str) -> bool:
        """See `Weights`. From the first moment on no call finds the name."""
        if self._calls[name] or self._engine_has(name):
            return False
        request, calls, last = self._requests.pop(name), self._calls.pop(name), self._last.pop(name)
        gone = False
        try:
            await self._llm.remove_lora(request.lora_int_id)
            gone = True
        except Exception:
            log.exception("vLLM does not let go of adapter %s, which keeps its slot", name)
        finally:
            if not gone:
                self._requests[name], self._calls[name], self._last[name] = request, calls, last
        return gone

    def close(self, name: str) -> None:
        """See `Weights`: calls ask the adapter table before they use an adapter."""

    def reopen(self, name: str) -> None:
        """See `Weights`."""

    def uses(self) -> Mapping[str, Use]:
        """See `Weights`."""
        return {name: Use(calls, self._last[name]) for name, calls in self._calls.items()}

    @contextlib.contextmanager
    def used(self, name: str) -> Iterator[None]:
        """While it lasts a call uses the adapter, which is held."""
        self._calls[name] += 1
        self._last[name] = time.monotonic()
        try:
            yield
        finally:
            self._calls[name] -= 1
            self._last[name] = time.monotonic()
            if not self._calls[name] and name in self._awaited:
                self._awaited = frozenset()
                self._tell()

    def tell_when_idle(self, names: Collection[str], tell: Callable[[], None]) -> None:
        """See `Weights`."""
        self._awaited, self._tell = frozenset(names), tell
        if any(not self._calls.get(name) for name in names):
            # Since just now, or vLLM has yet to let go of a request.
            asyncio.get_running_loop().call_later(_LOOK_AGAIN_S, tell)

    def _engine_has(self, name: str) -> bool:
        """Whether vLLM knows of a request with it, whoever still waits for that."""
        lora = self._requests[name].lora_name
        states = self._llm.output_processor.request_states.values()
        return any(state.lora_name == lora for state in states)
