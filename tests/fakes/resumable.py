"""Answers that fake replicas begin, break off and go on with, as they should or with lies.

A script made here sends its answer event by event with the tokens that each shows. Where the call
has a `Resume` it says the rest, once it has looked whether the `Resume` is what was said before.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from penstock.v1 import common_pb2 as common
from penstock.v1 import inference_pb2 as v1
from tests.fakes.fake_replica import FakeCall, Script
from tests.fakes.spoken import CHAT, Spoken

CREATED = 1_700_000_000
FIRST_ID = 100
PROMPT_TOKENS = 3


@dataclass(frozen=True, slots=True)
class Step:
    """One event, and the tokens that it shows."""

    body: bytes
    groups: tuple[v1.TokenGroup, ...] = ()

    @property
    def tokens(self) -> int:
        """How many these are."""
        return sum(len(group.token_ids) for group in self.groups)


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole stream, event by event."""

    steps: tuple[Step, ...]

    @property
    def body(self) -> bytes:
        """What its client gets."""
        return self.said(len(self.steps))

    def said(self, events: int) -> bytes:
        """The first events."""
        return b"".join(step.body for step in self.steps[:events])

    @property
    def tokens(self) -> int:
        """Of all of it."""
        return sum(step.tokens for step in self.steps)

    def groups(self, events: int) -> list[v1.TokenGroup]:
        """Those that the first events show."""
        return [group for step in self.steps[:events] for group in step.groups]


def answer(words: int = 6, spoken: Spoken = CHAT) -> Answer:
    """An answer of so many words, each a token with an id of its own, from `FIRST_ID` on."""
    said = [
        Step(spoken.text(f"{number} "), (_group(number, last=number + 1 == words),))
        for number in range(words)
    ]
    return Answer((*_untold(spoken.begin), *said, *_untold(spoken.end)))


def _group(number: int, *, last: bool) -> v1.TokenGroup:
    return v1.TokenGroup(token_ids=[FIRST_ID + number], finish_reason="stop" if last else "")


def _untold(body: bytes) -> Iterable[Step]:
    return (Step(event + b"\n\n") for event in body.split(b"\n\n")[:-1])


@dataclass(frozen=True, slots=True)
class Lie:
    """What a replica says wrongly of the rest, and only of that."""

    repeated: int = 0  # events that its client has, which it says once more
    head: v1.Head = field(default_factory=v1.Head)  # fields that are other than they were
    usage: common.Usage | None = None  # of the whole answer
    silent: bool = False  # nothing comes


HONEST = Lie()


def saying(whole: Answer, lie: Lie = HONEST) -> Script:
    """Says all of it, or the rest."""

    async def script(call: FakeCall) -> None:
        if not await _say(call, whole, len(whole.steps), lie):
            return
        await call.finish()

    return script


def breaking(whole: Answer, events: int, end: Script, lie: Lie = HONEST) -> Script:
    """Says its first events, of the rest those that the client lacks; then `end` has the call."""

    async def script(call: FakeCall) -> None:
        if await _say(call, whole, events, lie):
            await end(call)

    return script


def failing(
    code: str, *, retry: bool = False, status: int = 503, type: str = "server_error"
) -> Script:
    """An end: the replica says that it cannot go on."""
    error = common.ErrorDetail(
        status=status,
        type=type,
        code=code,
        message=f"the replica said {code}",
        fault=common.FAULT_UPSTREAM,
        retry=common.RETRY_BEFORE_FIRST_TOKEN if retry else common.RETRY_NEVER,
    )

    async def script(call: FakeCall) -> None:
        await call.fail(error)

    return script


resume_unsupported = failing("resume_unsupported", retry=True)
bad_resume = failing("bad_resume", status=400, type="invalid_request_error")


def equal_load(config_hash: str = "same", *, resumes: bool = True) -> v1.Load:
    """Of a replica that goes on with answers of all that have this `config_hash`."""
    return v1.Load(
        state=v1.REPLICA_STATE_READY,
        max_running=256,
        adapter_slots=4,
        config_hash=config_hash,
        resumes=resumes,
    )


async def _say(call: FakeCall, whole: Answer, upto: int, lie: Lie) -> bool:
    """Whether the call goes on; it has ended where its `Resume` is not of this answer."""
    resume = call.request.resume
    goes_on = call.request.HasField("resume")
    if goes_on and not _fits(resume, whole):
        await bad_resume(call)
        return False
    call.facts = v1.Head(
        prompt_tokens=PROMPT_TOKENS,
        cached_tokens=resume.cached_tokens,
        created=resume.created or CREATED,
        resumable=call.request.token_groups,
    )
    made = whole.groups(upto)
    call.usage = common.Usage(
        prompt_tokens=PROMPT_TOKENS,
        completion_tokens=sum(len(group.token_ids) for group in made),
        cached_tokens=resume.cached_tokens,
    )
    if goes_on and lie.silent:
        await call.cancelled.wait()
    if goes_on:
        call.facts.MergeFrom(lie.head)
        call.usage = lie.usage or call.usage
    first = max(0, resume.events - (lie.repeated if goes_on else 0))
    for step in whole.steps[first:upto]:
        groups = step.groups if call.request.token_groups else ()
        await call.send(step.body, tokens=step.tokens, groups=groups)
    return True


def _fits(resume: v1.Resume, whole: Answer) -> bool:
    """Whether it is what a client has of this answer."""
    told = list(resume.groups)
    return (
        resume.events <= len(whole.steps)
        and told == whole.groups(resume.events)
        and resume.created == CREATED
    )
