"""A provider as an `Engine`: what all of them have in common.

Calls take turns for the places that there are; a call is tried again, with jitter, until something
of its answer has come; a client that is slower than the provider holds the reading of it back; a
provider that says nothing for too long has failed. Its death is no death of this process.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import logging
import random
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from penstock.replica.adapters.table import AdapterTable
from penstock.replica.calls import failures
from penstock.replica.engine import Sink, Sleepless, Unmoved, Unresumed
from penstock.replica.providers import errors, requests
from penstock.replica.providers.account import Account
from penstock.replica.providers.budgets import prompt_tokens, within_budget
from penstock.replica.providers.no_adapters import NoWeights
from penstock.replica.providers.reachability import open_once
from penstock.replica.providers.retries import pause
from penstock.replica.providers.settings import Common
from penstock.replica.providers.sizes import most_bytes
from penstock.replica.providers.values import Ask, Broken, Provider, ProviderFailed, TooLarge
from penstock.replica.values import (
    Call,
    Death,
    EngineError,
    EngineFacts,
    EngineKind,
    Failed,
    Head,
    LoadFigures,
    Usage,
)

log = logging.getLogger(__name__)

_ODD: Final = (*(AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError),)
"""What reading raises where somebody sends other shapes than his API has."""

_KNOCK_S: Final = 1.0
_LONGEST_KNOCK_S: Final = 15.0


class ProviderEngine(Sleepless, Unmoved, Unresumed):
    """The engine of one provider's model. `capacity`: calls that it works on at once."""

    def __init__(
        self,
        provider: Provider,
        model: str,
        common: Common,
        engine_args: Mapping[str, str],
        capacity: int,
    ) -> None:
        self._provider = provider
        self._model = model
        self._common = common
        self._capacity = capacity
        self._digest = _digest([provider.name, model, dict(engine_args)])
        self._places = asyncio.Semaphore(capacity)
        self._dice = random.Random()
        self._running = 0
        self._waiting = 0
        self._tokens = 0
        self._prompt_tokens = 0
        self._changed: Callable[[], None] = lambda: None
        self._table = AdapterTable(NoWeights())

    async def start(self) -> EngineFacts:
        """Returns once the provider takes connections, whatever time that takes."""
        self._table.open(0)
        for again in itertools.count():
            try:
                await self.reach()
                break
            except EngineError as error:
                log.warning("the provider is not there yet: %s", error)
                longest = min(_LONGEST_KNOCK_S, _KNOCK_S * 2**again)
                await asyncio.sleep(self._dice.uniform(longest / 2, longest))
        return EngineFacts(
            backend=self._provider.name,
            backend_version=self._provider.version,
            model_version=self._model,
            max_model_len=self._common.max_model_len,
            max_running=self._capacity,
            config_hash=self._digest,
            endpoints=self._provider.endpoints,
            model=self._model,
        )

    async def answer(self, call: Call, sink: Sink) -> None:
        """Writes the provider's answer into the sink; see the Protocol."""
        try:
            ask = self._ask(call)
            async with asyncio.timeout(call.deadline_ms / 1000 or None):
                await self._in_turn(ask, sink)
        except ProviderFailed as error:
            sink.fail(error.failed)
        except TimeoutError:
            sink.fail(failures.too_late(call.deadline_ms))

    def load(self) -> LoadFigures:
        """Exact at any time, but for tokens of answers that are not over: those are estimates."""
        return LoadFigures(
            running=self._running,
            waiting=self._waiting,
            tokens=self._tokens,
            prompt_tokens=self._prompt_tokens,
        )

    def watch(self, changed: Callable[[], None]) -> None:
        """Has `changed` called when a call begins or ends."""
        self._changed = changed

    def cpu_seconds(self) -> float:
        """It has no process of its own."""
        return 0.0

    async def metrics(self) -> str:
        """It has none beside the replica's."""
        return ""

    def kind(self) -> EngineKind:
        """Another party answers."""
        return EngineKind.PROVIDER

    async def pool(self, text: str, *, priority: int = 0) -> int:
        """Nothing is asked of a provider that no client asked."""
        raise EngineError("a provider is not asked for checks: its answers cost money")

    async def reach(self) -> None:
        """Opens a connection to the provider, and closes it."""
        if place := self._provider.place:
            await open_once(place, self._common.connect_timeout)

    async def probe(self) -> None:
        """This process turns; whether the provider does shows in its answers."""

    async def died(self) -> Death:
        """A provider that is gone comes back: nothing here dies of it."""
        await asyncio.get_running_loop().create_future()
        return Death("")

    @property
    def adapters(self) -> AdapterTable:
        """There are none."""
        return self._table

    async def stop(self) -> None:
        """Lets go of the provider."""
        self._table.close()
        await self._provider.close()

    def _ask(self, call: Call) -> Ask:
        if call.path not in self._provider.endpoints:
            raise ProviderFailed(failures.unsupported_endpoint(call, self._provider.endpoints))
        if call.adapter:
            raise ProviderFailed(failures.unknown_adapter(call))
        if call.resume is not None:
            raise errors.cannot_resume()
        body = requests.read_body(call)
        field, asked = requests.completion_limit(call, body)
        if body.get(field) is not None and 0 < self._common.max_model_len < asked:
            raise errors.beyond_context(field, asked, self._common.max_model_len)
        requests.check_tools(body, self._common.tools)
        ask = Ask(call, body, int(datetime.now(UTC).timestamp()))
        return within_budget(ask, self._common.max_model_len)

    async def _in_turn(self, ask: Ask, sink: Sink) -> None:
        self._waiting += 1
        self._changed()
        try:
            await self._places.acquire()
        finally:
            self._waiting -= 1
        self._running += 1
        self._changed()
        try:
            await self._attempts(ask, sink)
        finally:
            self._running -= 1
            self._places.release()
            self._changed()

    async def _attempts(self, ask: Ask, sink: Sink) -> None:
        prompt, before = prompt_tokens(ask), Usage()
        tier = self._common.allowed.factor(ask.body.get("service_tier"))
        prices = replace(self._common.prices.of(ask.call), factor=tier)
        for attempt in range(self._common.retries + 1):
            account = Account(prices, prompt, before)
            sink.costs(account.costs)
            try:
                await self._counted(ask, account, sink)
            except ProviderFailed as error:
                wait = None if account.begun else pause(attempt, error, self._dice)
                if wait is None or attempt == self._common.retries:
                    return _fail(error.failed, account, ask, sink)
                code = error.failed.code
                log.info("asking the provider again", extra={"code": code, "attempt": attempt + 1})
                before = account.costs()
                await asyncio.sleep(wait)
            else:
                return sink.finish(account.finished())

    async def _counted(self, ask: Ask, account: Account, sink: Sink) -> None:
        try:
            await self._attempt(ask, account, sink)
        except TooLarge:
            raise errors.too_large(most_bytes(ask)) from None
        except Broken as error:
            raise _broken(error, account) from None
        except _ODD:
            log.warning("a provider's answer cannot be read", exc_info=True)
            raise errors.cut_short("The provider's answer cannot be read.") from None
        finally:
            self._prompt_tokens += account.usage().prompt_tokens

    async def _attempt(self, ask: Ask, account: Account, sink: Sink) -> None:
        common, now = self._common, asyncio.get_running_loop().time
        patience = common.first_event_timeout if ask.stream else common.answer_timeout
        try:
            async with (
                aclosing(self._provider.answer(ask, account)) as pieces,
                asyncio.timeout(patience) as limit,
            ):
                async for piece in pieces:
                    if piece.body:
                        if not account.begun:
                            self._begin(ask, account, sink)
                        self._tokens += piece.tokens
                        if sink.write(piece.body, piece.events, (), piece.tokens):
                            # The client is slow, which is no fault of the provider.
                            limit.reschedule(None)
                            await sink.room()
                    if account.begun:
                        limit.reschedule(now() + common.between_events_timeout)
        except TimeoutError:
            begun = account.begun
            waited = common.between_events_timeout if begun else patience
            raise errors.silent(waited, begun=begun) from None

    def _begin(self, ask: Ask, account: Account, sink: Sink) -> None:
        account.begun = account.sent = True
        content_type = "text/event-stream" if ask.stream else "application/json"
        sink.head(
            Head(
                200,
                content_type,
                trimmed_messages=ask.trimmed_messages,
                trimmed_tokens=ask.trimmed_tokens,
            )
        )


def _broken(error: Broken, account: Account) -> ProviderFailed:
    if account.begun:
        return errors.cut_short(f"The provider's answer was cut off: {error}.")
    account.sent = error.sent
    return errors.unreachable(str(error))


def _fail(failed: Failed, account: Account, ask: Ask, sink: Sink) -> None:
    if failed.fault != "client":
        log.warning(
            "a call failed at the provider",
            extra={
                "request_id": ask.call.request_id,
                "provider_request_id": account.provider_request_id,
                "status": failed.status,
                "code": failed.code,
            },
        )
    sink.fail(failed)


def _digest(facts: object) -> str:
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]
