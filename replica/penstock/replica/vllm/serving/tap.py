"""What one call does inside the engine, watched between the engine and vLLM's serving layer.

`CURRENT` names the call on whose behalf code runs: tasks that vLLM starts for it inherit the
variable. `client.py` feeds the tap with the engine's outputs, `models.py` and `app.py` read the
call from it. The outputs are vLLM's `RequestOutput`s, and `PoolingRequestOutput`s of models that
pool, used by their attributes alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextvars import ContextVar
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import count
from typing import Any, Final, NoReturn
from uuid import UUID

from penstock.replica.values import Call, Failed, Finished, Head, TokenGroup, Usage
from penstock.replica.vllm.failures import errors
from penstock.replica.vllm.fairness.turns import Owner, Room
from penstock.replica.vllm.guards.limits import MAX_LOGPROBS
from penstock.replica.vllm.resume.apart import Apart
from penstock.replica.vllm.resume.continuation import Continuation

log = logging.getLogger(__name__)


class RequestDropped(Exception):
    """The engine let go of a request that nobody had cancelled; the tap's `lost` says how."""


class CallTap:
    """The figures of one call, growing as its outputs pass. One asyncio loop, no locks.

    `hung_up`: the client left, so an abort is expected. `lost`: the engine dropped the call, and
    whatever the serving layer makes of that is not an answer. `made`: vLLM's request of the body,
    where it was made ahead. `parsed`: vLLM has its request. `grammar_field`: the field of that
    which binds the answer. `refused`: what the serving layer met, and where it answers with an
    error, why.
    `pinned`: messages that stay where the call is trimmed, as `marks.pinned` tells them. `trimmed`:
    how many messages went, and how many tokens the prompt has fewer for it.
    `echoed`: fields of the request that its answer repeats, where vLLM's does not.
    `held_us`: how long its last request waited before the engine.
    `when_aboard`: called when the engine gets something of the call.
    `logprobs`: how many log probabilities the answer will hold in one piece, as far as is known.
    `written`: the answer's JSON, where it was made ahead.
    `moved`: tokens of its prompt that were moved here for it; `beside`: what the engine is told
    beside its requests.
    `most_numbers`: how many pooled numbers the answer may hold; none: it holds few of them.
    `created`: when the answer says that it was made, in seconds since 1970.
    `resumable`: whether another replica could go on with all of its requests; None: has none yet.
    `continuation`: what another replica has delivered of it.
    `requests`: how many have begun.
    `apart`: which of its events are not written as they come; `gathers`: where what one output
    became is written in one piece, by `write_gathered`; `turn`: of those of its requests' outputs
    that pass one by one.
    """

    reads = False  # its prompt is looked at, and the engine does not get it

    def __init__(self, call: Call) -> None:
        self.call = call
        self.hung_up = False
        self.lost: Failed | None = None
        self.made: Any = None
        self.parsed = False
        self.grammar_field = ""
        self.refused: Failed | None = None
        self.pinned: frozenset[int] = frozenset()
        self.trimmed = (0, 0)
        self.most_numbers: int | None = None
        self.logprobs = 0
        self.held_us = 0
        self.written = b""
        self.echoed: dict[str, Any] = {}
        self.moved = 0
        self.beside: dict[str, Any] = {}
        self.created = _created(call)
        self.resumable: bool | None = None
        self.continuation = Continuation(call.resume) if call.resume else None
        self.apart = Apart(call.resume.events) if call.resume else None
        self.gathers = False
        self.write_gathered: Callable[[], Awaitable[None]] = _nothing_gathered
        self.turn = asyncio.Lock()
        self._uuids = count()
        self._moved_found = 0
        self._wants_groups = call.token_groups
        self._groups: list[TokenGroup] = []
        self._prompt_tokens: dict[int, int] = {}
        self._cached: dict[int, int] = {}
        self._completion_tokens = self._taken_tokens = 0
        self._reasons: dict[int, str] = {}
        self._choices = 0
        self.requests = 0
        self._pooled = self._numbers = 0
        self._constrained = False
        self._metrics: Any = None
        self._room: Room | None = None
        self._opened: list[AsyncGenerator[Any, None]] = []
        self._entered: list[Any] = []
        self.when_aboard: Callable[[], None] = _nothing

    def instead(self, prompt: Any) -> AsyncGenerator[Any, None] | None:
        """What comes of a prompt in the engine's place; none: the engine gets it."""

    def next_uuid(self) -> UUID:
        """A name for a part of the answer, the same on every replica that makes it."""
        # Those that the reading of the body draws may be drawn beside the loop, and then are not.
        part = "answer" if self._choices else "request"
        name = f"{self.call.request_id}/{part}/{next(self._uuids)}"
        return UUID(bytes=blake2b(name.encode(), digest_size=16).digest(), version=4)

    def cached_before(self, found: int) -> int:
        """Of tokens that the engine found cached, those that were here before the call."""
        if self.continuation is not None:
            return found  # as the first replica told
        self._moved_found = min(found, self.moved)
        return found - self._moved_found

    def entered(self, state: Any) -> None:
        """A sequence of the call is in the engine; `state` is what vLLM keeps of it, and counts in
        it what has come out, also where the serving layer has not taken it yet."""
        self._entered.append(state)
        self.when_aboard()

    def aboard(self) -> bool:
        """Whether the engine has had anything of the call."""
        return bool(self._entered)

    def usage(self) -> Usage | None:
        """What the call has cost so far: its prompts as far as the engine has accepted them, and
        every token that came out. None: the engine never had any of it."""
        if not self.aboard():
            return None
        # The sequences of one request have its prompt in common.
        requests = {_request_of(state): state for state in reversed(self._entered)}
        return Usage(
            prompt_tokens=sum(state.prompt_len for state in requests.values()),
            completion_tokens=sum(_made_by(state) for state in self._entered),
            cached_tokens=sum(
                self.cached_before(state.num_cached_tokens) for state in requests.values()
            ),
        )

    def room(self, tokens: int) -> Room:
        """Bounds what of the call is in the engine at once to so many tokens, so that others need
        not wait for all of a long list of texts."""
        if self._room is None:
            self._room = Room(tokens)
        return self._room

    def opened(self, outputs: AsyncGenerator[Any, None]) -> AsyncGenerator[Any, None]:
        """Keeps what the engine gives to the call, for `close`."""
        self._opened.append(outputs)
        return outputs

    async def close(self) -> None:
        """Takes out of the engine what is left of the call: vLLM drops its generators where a
        client has left, and leaves it to the garbage collector to end them."""
        for outputs in self._opened:
            try:
                await outputs.aclose()
            except RuntimeError:
                # One that runs is being cancelled by vLLM.
                log.debug("call %s: vLLM ends its outputs itself", self.call.request_id)
            except Exception:
                log.exception("call %s: its outputs cannot be ended", self.call.request_id)

    def begin(self, choices: int, *, constrained: bool = False) -> int:
        """A request of the call goes to the engine; returns the index of its first choice.

        A list of prompts makes several; the serving layer numbers all their choices through.
        `constrained`: its output must follow a grammar.
        """
        self._constrained = constrained
        if not self._choices:
            self._uuids = count()
        first = self._choices
        self._choices += choices
        self.requests += 1
        return first

    def saw(self, first: int, output: Any) -> None:
        """One output of the request that `begin` answered with `first`."""
        if first not in self._prompt_tokens or first not in self._cached:
            self._saw_beginning(first, output)
        new = self.continuation is None or not self.continuation.replaying
        for part in output.outputs:
            self._completion_tokens += len(part.token_ids)
            if part.finish_reason is not None:
                self._saw_end(first + part.index, part.finish_reason, output)
                self._count_logprobs(part)
            if not new:
                self._taken_tokens += len(part.token_ids)
            elif self._wants_groups:
                self._groups.append(_group_of(first + part.index, part))

    def _count_logprobs(self, last: Any) -> None:
        """Of an answer that is not streamed, a choice's only output has all; of a stream, few."""
        self.logprobs += sum(map(len, last.logprobs or ()))
        if self.logprobs > MAX_LOGPROBS:
            field = "logprobs" if self.call.path == "/v1/completions" else "top_logprobs"
            self._lose(errors.too_many_logprobs(self.logprobs, MAX_LOGPROBS, field))

    def saw_pooled(self, choice: int, output: Any) -> None:
        """The only output of a request that pools, and that `begin` answered with `choice`."""
        if output.error is not None:
            self._lose(errors.engine_error())
        else:
            self._numbers += output.outputs.data.numel()
        if self.most_numbers is not None and self._numbers > self.most_numbers:
            self._lose(errors.too_many_numbers(self._numbers, self.most_numbers))
        self._prompt_tokens[choice] = len(output.prompt_token_ids)
        self._cached[choice] = output.num_cached_tokens
        self._pooled += int(output.finished)

    def _saw_beginning(self, first: int, output: Any) -> None:
        if output.prompt_token_ids is not None:
            self._prompt_tokens[first] = len(output.prompt_token_ids)
        if output.num_cached_tokens is not None:
            self._cached.setdefault(first, output.num_cached_tokens)
        self._metrics = output.metrics or self._metrics

    def _saw_end(self, choice: int, reason: str, output: Any) -> None:
        if reason == "abort" and not self.hung_up:
            self._lose(errors.cut_short())
        if reason == "error":
            self._lose(self._dropped())
        self._reasons[choice] = reason
        self._metrics = output.metrics or self._metrics

    def _dropped(self) -> Failed:
        if self._constrained and self.continuation is not None and not self.continuation.went_on:
            return errors.bad_resume("what was delivered is not what its grammar allows")
        if self._constrained:
            return errors.nothing_allowed(self.grammar_field)
        return errors.engine_error()

    def _lose(self, failure: Failed) -> NoReturn:
        self.lost = failure
        raise RequestDropped

    def take_groups(self) -> tuple[TokenGroup, ...]:
        """The groups that came since the last time, for the event that first shows them."""
        if not self._groups:
            return ()
        groups = tuple(self._groups)
        self._groups.clear()
        return groups

    def take_tokens(self) -> int:
        """How many tokens came since the last time."""
        taken, self._taken_tokens = self._taken_tokens, self._completion_tokens
        return self._completion_tokens - taken

    def head_known(self) -> bool:
        """Whether the engine has said anything yet."""
        return bool(self._prompt_tokens)

    def complete(self) -> bool:
        """Whether every choice that was begun came to its end."""
        return len(self._reasons) + self._pooled == self._choices

    def head(self, status: int, content_type: str) -> Head:
        """The answer's head, with what is known by its first byte."""
        return Head(
            status=status,
            content_type=content_type,
            prompt_tokens=sum(self._prompt_tokens.values()),
            cached_tokens=sum(self._cached.values()),
            queue_wait_us=self.held_us + self._between("queued_ts", "scheduled_ts"),
            trimmed_messages=self.trimmed[0],
            trimmed_tokens=self.trimmed[1],
            kv_moved_tokens=self._moved_found,
            resumable=bool(self.resumable),
            created=self.created,
        )

    def finished(self) -> Finished:
        """The call's last event. Of several requests, the times are those of the last."""
        return Finished(
            prompt_tokens=sum(self._prompt_tokens.values()),
            completion_tokens=self._completion_tokens,
            cached_tokens=sum(self._cached.values()),
            queue_us=self.held_us + self._between("queued_ts", "scheduled_ts"),
            prefill_us=self._between("scheduled_ts", "first_token_ts"),
            decode_us=self._between("first_token_ts", "last_token_ts"),
            finish_reasons=tuple(self._reasons[i] for i in sorted(self._reasons)),
            adapter=self.call.adapter,
        )

    def _between(self, earlier: str, later: str) -> int:
        """Microseconds between two of the engine's time stamps; 0 where one is missing."""
        if self._metrics is None:
            return 0
        start: float = getattr(self._metrics, earlier)
        end: float = getattr(self._metrics, later)
        return max(0, round((end - start) * 1e6)) if start > 0 and end > 0 else 0


def _created(call: Call) -> int:
    told = call.resume.created if call.resume else 0
    return told or int(datetime.now(UTC).timestamp())


def _nothing() -> None:
    pass


async def _nothing_gathered() -> None:
    pass


def _request_of(state: Any) -> str:
    parent = state.parent_req
    request_id: str = state.request_id if parent is None else parent.request_id
    return request_id


def _made_by(state: Any) -> int:
    """Tokens that a sequence has made; one that is to be pooled makes none."""
    return state.detokenizer.num_output_tokens() if state.detokenizer is not None else 0


def _group_of(choice: int, part: Any) -> TokenGroup:
    if part.finish_reason is None:
        return TokenGroup(choice, tuple(part.token_ids))
    stop = "" if part.stop_reason is None else str(part.stop_reason)
    return TokenGroup(choice, tuple(part.token_ids), part.finish_reason, stop)


CURRENT: Final[ContextVar[CallTap | None]] = ContextVar("penstock_call", default=None)
"""The call on whose behalf this code runs; None outside any."""


def owner() -> Owner:
    """On whose behalf it runs, for who takes turns."""
    tap = CURRENT.get()
    return ("", None) if tap is None else (tap.call.tenant, tap)
