"""MicroServing on vLLM: the calls, in the replica's process.

Leases and blocks are the business of the engine's process (`scheduling.py`), which is asked here by
vLLM's utility calls. What is sent is an ordinary request of one token, which takes its tenant's
turn and its adapter as any other.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import uuid4

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
from penstock.replica.owned_tasks import OwnedTasks
from penstock.replica.values import Call, KvHint
from penstock.replica.vllm.microserving.frames import LARGEST_ID
from penstock.replica.vllm.microserving.orders import LEASE, SEND
from penstock.replica.vllm.microserving.prompts import (
    block_hashes,
    engine_fingerprint,
    lease_fingerprint,
    lora_name,
    mm_hashes,
    placed,
    token_ids,
)
from penstock.replica.vllm.serving.tap import CURRENT, CallTap

log = logging.getLogger(__name__)

_CALL: Final = "penstock_microserving"
_FIGURES_EVERY: Final = 0.05


@dataclass(frozen=True, slots=True)
class Asking:
    """What the engine is asked: the prompts that a call would submit; to have a call's adapter for
    as long as it lasts, which gives vLLM's request of it; and that of an adapter, if it is here."""

    prompts: Callable[[Call], Awaitable[list[Any]]]
    held: Callable[[Call], AbstractAsyncContextManager[Any]]
    adapter: Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class Moved:
    """What a call's router has prepared: the lease that ends as it is scheduled, and how much of
    what the engine will find cached was moved for it."""

    lease: str = ""
    tokens: int = 0

    def told(self) -> dict[str, Any]:
        """For the engine, beside a request."""
        return {LEASE: self.lease} if self.lease else {}


class VllmMicroServing:
    """Of one engine that is up. `begin` it first, and `close` it."""

    def __init__(self, llm: Any, asking: Asking, changed: Callable[[], None]) -> None:
        """`changed`: called when the figures are others."""
        self._llm = llm
        self._asking = asking
        self._changed = changed
        self._tasks = OwnedTasks()
        self._shown: dict[str, Any] = {}
        self._ranks: tuple[KvRank, ...] = ()
        self._size = 0
        self._fingerprint = ""
        # What is sent is computed by a request of one token more, which makes another.
        self._longest: int = llm.model_config.max_model_len - 2

    async def begin(self, identity: Mapping[str, Any]) -> None:
        """Learns of the workers. `identity`: what decides the bytes of the engine's KV."""
        told = await self._ask("describe")
        self._ranks = tuple(KvRank(one["host"], one["port"]) for one in told["ranks"])
        self._size = told["block_size"]
        parts = {**identity, "layouts": told["layouts"], "block_size": self._size}
        self._fingerprint = engine_fingerprint(parts)
        self._tasks.spawn(self._follow())

    def close(self) -> None:
        """Asks no more."""
        self._tasks.close()

    async def tokenize(self, call: Call) -> Tokenized:
        """See `MicroServing`."""
        read = await self._asking.prompts(replace(call, adapter="", adapter_digest="", kv=None))
        ids = token_ids(read[0])
        if len(read) != 1 or not ids:
            raise MicroServingError("unsupported", "only calls with one prompt of tokens are moved")
        named = (call.adapter, call.adapter_digest, call.tenant_salt, mm_hashes(read[0]))
        prompt = self._named(Prompt(tuple(ids), *named))
        hashes = () if prompt.mm_hashes else block_hashes(prompt, self._size)
        return Tokenized(prompt, len(ids), self._size, hashes)

    async def prep_recv(self, prompt: Prompt, end: int, seq_id: str, ttl_ms: int) -> Prepared:
        """See `MicroServing`."""
        prompt = self._checked(prompt, seq_id)
        if not 0 <= end <= len(prompt.token_ids):
            raise MicroServingError("bad_request", f"the prompt has no {end} tokens")
        end = min(end, self._longest) // self._size * self._size
        fingerprint = lease_fingerprint(self._fingerprint, prompt, end)
        asked = {"seq_id": seq_id, "ttl_ms": ttl_ms, "end": end, "fingerprint": fingerprint}
        told = await self._ask("prep_recv", **asked, **_told(prompt, end))
        address = KvAddress(
            lease=seq_id,
            nonce=bytes.fromhex(told["nonce"]),
            first_block=told["first"],
            blocks=told["blocks"],
            block_size=self._size,
            fingerprint=fingerprint,
            ranks=self._ranks,
        )
        return Prepared(address, told["matched"], told["end"])

    async def remote_send(self, sending: Sending) -> Sent:
        """See `MicroServing`."""
        address, size = sending.kv_addr, self._size
        sending = replace(sending, prompt=self._checked(sending.prompt, sending.seq_id))
        leased = (address.first_block + address.blocks) * size
        self._check_address(sending, leased)
        first = max(sending.begin // size, address.first_block)
        last = min(sending.end, leased) // size
        if first >= last:
            return Sent(0, 0, 0, 0)
        job = uuid4().hex
        told = {
            "job": job,
            "lease": address.lease,
            "nonce": address.nonce.hex(),
            "fingerprint": placed(address.fingerprint, address.first_block),
            "ranks": [[rank.host, rank.port] for rank in address.ranks],
            "first": address.first_block,
            "begin": first,
            "end": last,
        }
        try:
            async with asyncio.timeout(sending.deadline_ms / 1000 or None):
                report, cached = await self._send(sending, told, (last * size) + 1)
        except TimeoutError:
            raise MicroServingError("deadline", "it was not sent in time") from None
        finally:
            self._tasks.spawn(self._drop(job))
        moved = (last - first) * size
        return Sent(moved, report["bytes"], round(report["seconds"] * 1e6), cached)

    async def commit(self, seq_id: str) -> Committed:
        """See `MicroServing`."""
        told = await self._ask("commit", seq_id=seq_id)
        return Committed(told["cached"], told["matched"])

    async def release(self, seq_id: str) -> None:
        """See `MicroServing`."""
        await self._ask("release", seq_id=seq_id)

    async def lookup(self, prompt: Prompt) -> Found:
        """See `MicroServing`."""
        prompt = self._checked(prompt, "lookup")
        told = await self._ask("lookup", **_told(prompt, len(prompt.token_ids)))
        return Found(told["matched"], self._size, told["free"])

    def figures(self) -> MicroServingFigures:
        """See `MicroServing`."""
        return MicroServingFigures(**self._shown)

    async def release_all(self, *, asleep: bool) -> None:
        """Ends all leases, and begins none while `asleep`. Raises `MicroServingError`."""
        await self._ask("release_all", asleep=asleep)

    async def moved_for(self, hint: KvHint) -> Moved:
        """What was moved for a call that is about to be submitted: its lease takes no more from now
        on. Without that lease the call is computed plainly."""
        if not hint.seq_id:
            return Moved("", hint.moved_tokens)
        try:
            committed = await self.commit(hint.seq_id)
        except MicroServingError as error:
            log.info("lease %s of a call is not there: %s", hint.seq_id, error)
            return Moved("", max(hint.moved_tokens, await self._came(hint.seq_id)))
        return Moved(hint.seq_id, committed.cached_len - committed.matched_len)

    async def _came(self, seq_id: str) -> int:
        """Tokens that came by a lease that has ended, be it half of what was sent."""
        with contextlib.suppress(MicroServingError):
            return int((await self._ask("ended", seq_id=seq_id))["tokens"])
        return 0

    def give_back(self, moved: Moved) -> None:
        """Its call never came to the engine."""
        if moved.lease:
            self._tasks.spawn(self.release(moved.lease))

    async def _send(
        self, sending: Sending, told: dict[str, Any], tokens: int
    ) -> tuple[dict[str, Any], int]:
        """Computes so many tokens here, and waits until the others have what is theirs."""
        try:
            async with asyncio.TaskGroup() as tasks:
                report = tasks.create_task(self._asked("wait_send", job=told["job"]))
                computed = tasks.create_task(self._computed(sending, told, tokens))
                if (await report).get("error"):
                    computed.cancel()  # a receiver that has gone needs no more of it
        except ExceptionGroup as group:
            raise group.exceptions[0] from None
        return _answer(report.result()), computed.result()

    async def _computed(self, sending: Sending, told: dict[str, Any], tokens: int) -> int:
        """Runs the request; how much of it was cached. Raises `MicroServingError`."""
        from vllm.sampling_params import SamplingParams

        prompt = sending.prompt
        call = _call(sending)
        parameters = SamplingParams(max_tokens=1, temperature=0.0, detokenize=False)
        ids = [*prompt.token_ids, 0][:tokens]
        given: dict[str, Any] = {"prompt_token_ids": ids}
        if prompt.tenant_salt:
            given["cache_salt"] = prompt.tenant_salt
        tap = CallTap(call)
        tap.beside = {SEND: told}
        token = CURRENT.set(tap)
        try:
            async with self._asking.held(call) if call.adapter else nullcontext() as lora:
                asked = (given, parameters, f"send-{told['job']}")
                outputs = self._llm.generate(*asked, lora_request=lora, priority=call.priority)
                async with aclosing(outputs):
                    async for _ in outputs:
                        pass
        except MicroServingError:
            raise
        except Exception as error:
            raise MicroServingError("transfer", f"it cannot be computed: {error}") from error
        finally:
            CURRENT.reset(token)
            await tap.close()
        return tap.finished().cached_tokens

    async def _drop(self, job: str) -> None:
        await self._ask("drop_send", job=job)

    async def _follow(self) -> None:
        """Keeps the figures: the engine answers as soon as they are others."""
        while True:
            self._shown = await self._ask("figures", seen=self._shown)
            self._changed()
            await asyncio.sleep(_FIGURES_EVERY)

    async def _ask(self, operation: str, **asked: Any) -> dict[str, Any]:
        return _answer(await self._asked(operation, **asked))

    async def _asked(self, operation: str, **asked: Any) -> dict[str, Any]:
        core = self._llm.engine_core
        try:
            answer: dict[str, Any] = await core.call_utility_async(_CALL, operation, asked)
        except Exception as error:
            raise MicroServingError("transfer", f"the engine does not answer: {error}") from error
        return answer

    def _named(self, prompt: Prompt) -> Prompt:
        """With the digest of its adapter, which is known here if the adapter is held."""
        if not prompt.adapter or prompt.adapter_digest:
            return prompt
        lora = self._asking.adapter(prompt.adapter)
        if lora is None:
            raise MicroServingError("bad_request", f"the adapter {prompt.adapter} is not known")
        return replace(prompt, adapter_digest=lora.lora_name.rpartition(":")[2])

    def _checked(self, prompt: Prompt, seq_id: str) -> Prompt:
        if not 0 < len(seq_id.encode()) <= LARGEST_ID:
            raise MicroServingError("bad_request", f"seq_id has 1 to {LARGEST_ID} bytes")
        if prompt.mm_hashes:
            raise MicroServingError("unsupported", "prompts with pictures or sound are not moved")
        most = self._llm.model_config.get_vocab_size()
        if not prompt.token_ids or max(prompt.token_ids) >= most:
            raise MicroServingError("bad_request", "a prompt has tokens, all of the model's")
        if len(prompt.token_ids) > self._longest + 2:
            raise MicroServingError("bad_request", "the prompt is longer than the model's context")
        return self._named(prompt)

    def _check_address(self, sending: Sending, leased: int) -> None:
        address = sending.kv_addr
        fits = address.block_size == self._size and len(address.ranks) == len(self._ranks)
        mine = lease_fingerprint(self._fingerprint, sending.prompt, leased)
        if not fits or address.fingerprint != mine or len(sending.prompt.token_ids) < leased:
            raise MicroServingError(
                "fingerprint", "the receiver's KV is of another engine, adapter or prompt"
            )
        if sending.recv_rank or sending.begin < 0:
            raise MicroServingError("unsupported", "a replica has one engine: recv_rank is 0")


def _told(prompt: Prompt, tokens: int) -> dict[str, Any]:
    told = {"tokens": list(prompt.token_ids[:tokens]), "salt": prompt.tenant_salt}
    return {**told, "lora": lora_name(prompt)}


def _call(sending: Sending) -> Call:
    """The leg as a call of its own, for whose turn it is."""
    prompt = sending.prompt
    return Call(
        sending.request_id or f"send-{sending.seq_id}",
        "/v1/completions",
        b"",
        "",
        adapter=prompt.adapter,
        adapter_digest=prompt.adapter_digest,
        adapter_wait_ms=sending.deadline_ms,
        priority=sending.priority,
        deadline_ms=sending.deadline_ms,
        tenant_salt=prompt.tenant_salt,
        traceparent=sending.traceparent,
        tenant=sending.tenant,
    )


def _answer(told: dict[str, Any]) -> dict[str, Any]:
    if error := told.get("error"):
        raise MicroServingError(error, told["message"])
    return told
