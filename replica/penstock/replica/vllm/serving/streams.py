"""A stream whose tokens are kept: each event stands behind the tokens that it is made of, and no
other's, so that whoever knows how many events a client has knows its tokens.

vLLM takes the outputs of several prompts in heaps. Here they pass one by one, and the next one not
before what was made of this one is written. Pure, but for vLLM's outputs, used by their attributes
alone.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any, Final

from penstock.replica.vllm.resume.apart import Apart
from penstock.replica.vllm.resume.continuation import BadResume, Continuation
from penstock.replica.vllm.resume.kinds import can_be_resumed, is_streamed
from penstock.replica.vllm.serving.tap import CallTap

Outputs = AsyncGenerator[Any, None]

Ask = Callable[..., Outputs]
"""Asks the engine, given a priority."""

_SEVERAL: Final = "/v1/completions"
"""Takes several prompts."""

_AT_ONCE: Final = 16
"""Outputs that were delivered and pass in one turn of the loop, at some 50 us each."""


def note_kind(tap: CallTap, prompt: Any, sampling_params: Any, *, resumes: bool) -> bool:
    """Notes of a call whether it can be gone on with elsewhere; `resumes`: whether anything can be.
    Whether the outputs of this request of its are to pass one by one."""
    if not tap.call.token_groups:
        return False
    resumable = resumes and can_be_resumed(tap.call.path, prompt, sampling_params)
    tap.resumable = resumable and tap.resumable is not False
    if not is_streamed(sampling_params):
        return False
    if sampling_params.num_logprobs is not None:
        tap.apart = tap.apart or Apart()
        tap.gathers = True
    return tap.gathers or tap.call.path == _SEVERAL


async def replayed_first(tap: CallTap, name: str, ask: Ask, *, priority: int) -> Outputs:
    """The outputs of a request, behind those that were delivered before, in the order of these
    among all of the call's. Raises `BadResume`."""
    went = tap.continuation
    assert went is not None
    assert tap.apart is not None
    async with contextlib.aclosing(ask(priority=priority)) as outputs:
        first = True
        async for output in outputs:
            if first:
                first = False
                went.check_whole()
                async for old in _replayed(went, name):
                    yield old
                if tap.apart.had and not went.is_over():
                    raise BadResume("the client has events that its tokens do not make")
            if output.outputs:
                went.replaying = False
                went.went_on |= any(part.token_ids for part in output.outputs)
                yield output


async def _replayed(went: Continuation, name: str) -> Outputs:
    """What was delivered of the request; ends when all of the call's has passed."""
    outputs = went.request(name).outputs
    while outputs:
        place, old = outputs.popleft()
        await went.turn(place)
        went.replaying = True
        yield old
        went.passed()
        if not len(outputs) % _AT_ONCE:
            await asyncio.sleep(0)
    await went.turn(len(went.resume.groups))


async def one_by_one(tap: CallTap, saw: Callable[[Any], None], outputs: Outputs) -> Outputs:
    """The outputs of one request of the call, which `saw` sees as they pass."""
    async with contextlib.aclosing(outputs):
        async for output in outputs:
            if tap.requests == 1 and not tap.gathers:
                saw(output)
                yield output
                continue
            async with tap.turn:
                saw(output)
                with _gathered(tap):
                    yield output
                await tap.write_gathered()


@contextlib.contextmanager
def _gathered(tap: CallTap) -> Iterator[None]:
    if tap.apart is None or not tap.gathers:
        yield
        return
    tap.apart.gathers = True
    try:
        yield
    finally:
        tap.apart.gathers = False
