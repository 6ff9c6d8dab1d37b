"""What the client of a call has of its answer, as this replica goes on with it.

A call makes one or several requests of the engine (a list of prompts), each with one or several
choices, numbered through. Checked before the engine hears of anything: a resume that makes no sense
is the call's failure alone. Pure, but that requests wait for each other's turns: in one loop.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from penstock.replica.values import Resume, TokenGroup

FINISHES: Final = ("stop", "length", "repetition")
"""Reasons for which a delivered choice can have ended."""


class BadResume(Exception):
    """The resume makes no sense; `str()` says why, in one line."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the engine allows of a request: ids below `vocabulary`, so many tokens of each choice,
    and so many with its prompt."""

    vocabulary: int
    max_tokens: int
    max_model_len: int


@dataclass(slots=True)
class Begun:
    """One request of the call. `groups`: those of its choices, with their places among all."""

    first: int  # its first choice
    choices: int
    prompt_tokens: int
    groups: list[tuple[int, TokenGroup]] = field(default_factory=list)
    sequences: list[Any] = field(default_factory=list)  # vLLM's, of its choices
    outputs: deque[tuple[int, Any]] = field(default_factory=deque)  # of the groups, yet to pass

    def read_each(self) -> int:
        """How many of the tokens the engine reads for each of the choices, on average: none for
        those that have ended."""
        over = self.finished()
        going = (group for _, group in self.groups if group.choice - self.first not in over)
        return sum(len(group.token_ids) for group in going) // self.choices

    def ids(self, choice: int) -> list[int]:
        """All tokens of a choice, counted from the request's first."""
        of_choice = (group for _, group in self.groups if group.choice == self.first + choice)
        return [one for group in of_choice for one in group.token_ids]

    def finished(self) -> set[int]:
        """Its choices that have ended."""
        return {group.choice - self.first for _, group in self.groups if group.finish_reason}

    def is_over(self) -> bool:
        """Whether the engine has nothing left to do."""
        return len(self.finished()) == self.choices


class Continuation:
    """Of one call. `begin` each request; then the replayed outputs pass in the order in which they
    were delivered, before anything that is new."""

    def __init__(self, resume: Resume) -> None:
        self.resume = resume
        self.replaying = False  # what passes the tap was delivered before
        self.went_on = False  # the engine has made tokens behind that
        self._begun: dict[str, Begun] = {}
        self._by_choice: defaultdict[int, list[tuple[int, TokenGroup]]] = defaultdict(list)
        for place, group in enumerate(resume.groups):
            self._by_choice[group.choice].append((place, group))
        self._place = 0
        self._waiting: defaultdict[int, list[asyncio.Future[None]]] = defaultdict(list)

    def begin(
        self, name: str, first: int, choices: int, prompt_tokens: int, bounds: Bounds
    ) -> Begun:
        """A request of the call is about to go to the engine. Raises `BadResume`."""
        begun = Begun(first, choices, prompt_tokens)
        for choice in range(first, first + choices):
            groups = self._by_choice.get(choice, [])
            _check(choice, [group for _, group in groups], prompt_tokens, bounds)
            begun.groups += groups
        begun.groups.sort(key=lambda placed: placed[0])
        self._begun[name] = begun
        return begun

    def request(self, name: str) -> Begun:
        """The request that has begun under this name."""
        return self._begun[name]

    def check_whole(self) -> None:
        """All requests have begun. Raises `BadResume` for groups of choices that none has, and for
        more cached tokens than their prompts have."""
        prompts = sum(begun.prompt_tokens for begun in self._begun.values())
        if self.resume.cached_tokens > prompts:
            raise BadResume(f"{self.resume.cached_tokens} of {prompts} prompt tokens were cached")
        known = sum(begun.choices for begun in self._begun.values())
        if wrong := [choice for choice in self._by_choice if not 0 <= choice < known]:
            raise BadResume(f"choice {wrong[0]} is not one of the answer's {known}")

    def is_first(self, begun: Begun) -> bool:
        """Whether the answer's first group is the request's: figures that are known of the whole
        answer alone are told as its own."""
        return bool(begun.groups) and begun.groups[0][0] == 0

    def is_over(self) -> bool:
        """Whether every choice has ended."""
        return all(begun.is_over() for begun in self._begun.values())

    async def turn(self, place: int) -> None:
        """Returns when all that was delivered before this place has passed."""
        if self._place < place:
            waiting = asyncio.get_running_loop().create_future()
            self._waiting[place].append(waiting)
            await waiting

    def passed(self) -> None:
        """What stood next has passed."""
        self._place += 1
        for waiting in self._waiting.pop(self._place, ()):
            if not waiting.done():
                waiting.set_result(None)


def _check(choice: int, groups: Sequence[TokenGroup], prompt_tokens: int, bounds: Bounds) -> None:
    """Raises `BadResume` unless the engine can have made these groups of a choice."""
    if wrong := next(_shapes(groups), ""):
        raise BadResume(f"choice {choice}: {wrong}")
    tokens = sum(len(group.token_ids) for group in groups)
    most = min(bounds.max_tokens, bounds.max_model_len - prompt_tokens)
    if tokens > most:
        raise BadResume(f"choice {choice} has {tokens} tokens, at most {most} are possible")
    end = groups[-1].finish_reason if groups else ""
    if groups and tokens == most and not end:
        raise BadResume(f"choice {choice} has all of its {most} tokens and no end")
    if end == "length" and tokens < most:
        raise BadResume(f"choice {choice} ends by its length with {tokens} of {most} tokens")
    ids = [one for group in groups for one in group.token_ids]
    if ids and not 0 <= min(ids) <= max(ids) < bounds.vocabulary:
        raise BadResume(
            f"choice {choice} has ids from {min(ids)} to {max(ids)}; "
            f"those of the model are below {bounds.vocabulary}"
        )


def _shapes(groups: Sequence[TokenGroup]) -> Iterator[str]:
    """What is wrong with the groups, whatever their tokens are."""
    for group in groups[:-1]:
        if group.finish_reason:
            yield "it goes on after its end"
    for group in groups:
        if not group.token_ids and not group.finish_reason:
            yield "a group is empty"
        if group.finish_reason and group.finish_reason not in FINISHES:
            yield f"no delivered choice ends by {group.finish_reason!r}"
        if group.stop_reason and not group.finish_reason:
            yield "a group names what stopped it, and does not end"
