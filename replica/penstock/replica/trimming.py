"""The context budget of a conversation: which of its messages stay where there is room for some.

The oldest turns go first and whole. A turn is a user's message with all that answers it until the
next one. System and developer messages, pinned ones and the newest turn stay; a call of tools and
its results stay or go together. Pure: it knows messages by what is said of them here, and asks
whoever has a tokenizer for tokens. `native/simulated/trimming` is the same for the simulated
engine, in C++.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, count
from typing import Final

_LASTING: Final = ("system", "developer")
"""Roles whose messages stay."""

_GUESSES: Final = 3
"""Measurements whose place is guessed from the sizes; those after them halve what is left."""


@dataclass(frozen=True, slots=True)
class Message:
    """What trimming has to know of a message.

    `calls`: ids of the calls that it makes. `result_of`: id of the call whose result it is; empty:
    of none. `size`: a rough measure in any unit, for the first guess.
    """

    role: str
    pinned: bool = False
    calls: tuple[str, ...] = ()
    result_of: str = ""
    size: int = 1


@dataclass(frozen=True, slots=True)
class Fit:
    """What fits: the places of the messages that stay, in their order, the tokens that they have,
    and those that all messages had."""

    kept: tuple[int, ...]
    tokens: int
    whole: int


class Conversation:
    """Messages, and in which order they go."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = messages
        self._calls = list(_calls_answered(messages))
        stays = self._staying()
        self._leaving = [
            leaving
            for unit in self._units()[:-1]
            if (leaving := [place for place in unit if not stays[place]])
        ]

    @property
    def cuts(self) -> int:
        """How many times something can be left out."""
        return len(self._leaving)

    def sizes(self) -> list[int]:
        """The sizes of what is left out by no cut, by one, by two, and so on."""
        each = (sum(self._messages[place].size for place in unit) for unit in self._leaving)
        return list(accumulate(each, initial=0))

    def kept(self, cuts: int) -> tuple[int, ...]:
        """What stays, by place, after so many cuts."""
        gone = {place for unit in self._leaving[:cuts] for place in unit}
        return tuple(place for place in range(len(self._messages)) if place not in gone)

    def _staying(self) -> list[bool]:
        """Whether each message stays for its own sake, or for that of a call that it belongs to."""
        stays = [one.pinned or one.role in _LASTING for one in self._messages]
        both = list(zip(self._calls, stays, strict=True))
        lasting = {call for call, stay in both if stay and call is not None}
        return [stay or call in lasting for call, stay in both]

    def _units(self) -> list[list[int]]:
        """The places by turn; turns that a call and its result have in common are one."""
        turns: list[list[int]] = []
        for place, message in enumerate(self._messages):
            if message.role == "user" or not turns:
                turns.append([])
            turns[-1].append(place)
        last = {call: place for place, call in enumerate(self._calls) if call is not None}
        units: list[list[int]] = []
        until = -1
        for turn in turns:
            if turn[0] <= until:
                units[-1] += turn
            else:
                units.append(turn)
            until = max([until, *(last.get(place, -1) for place in turn)])
        return units or [[]]


def search(messages: Sequence[Message], budget: int) -> Generator[tuple[int, ...], int, Fit | None]:
    """Finds what stays so that it has at most `budget` tokens, and no turn goes that need not.

    Yields places of messages and is sent the tokens that these alone have, some few times; all of
    them first. Returns None where even what has to stay is too much.
    """
    conversation = Conversation(messages)
    whole = yield conversation.kept(0)
    if whole <= budget:
        return Fit(conversation.kept(0), whole, whole)
    sizes = conversation.sizes()
    rate = max(1, whole) / max(1, sum(one.size for one in messages))
    over, above = 0, whole  # the most cuts that are known not to do, and the tokens they leave
    fit: tuple[int, int] | None = None  # the fewest that are known to do, and theirs
    for probe in count():
        most = conversation.cuts if fit is None else fit[0] - 1
        if over >= most:
            break
        guess = _guessed(sizes, over, (above - budget) / rate)
        cuts = guess if probe < _GUESSES else (over + most + 1) // 2
        cuts = min(max(cuts, over + 1), most)
        tokens = yield conversation.kept(cuts)
        if tokens <= budget:
            fit = (cuts, tokens)
        else:
            over, above = cuts, tokens
    return None if fit is None else Fit(conversation.kept(fit[0]), fit[1], whole)


def fitted(
    messages: Sequence[Message], budget: int, measure: Callable[[Sequence[int]], int]
) -> Fit | None:
    """What stays, as `search` finds it; `measure` tells the tokens of the messages at these
    places."""
    asking = search(messages, budget)
    try:
        places = next(asking)
        while True:
            places = asking.send(measure(places))
    except StopIteration as found:
        fit: Fit | None = found.value
        return fit


def _guessed(sizes: Sequence[int], over: int, missing: float) -> int:
    """The fewest cuts that leave out so much more than `over` cuts do."""
    wanted = sizes[over] + missing
    return next((cuts for cuts, size in enumerate(sizes) if size >= wanted), len(sizes) - 1)


def _calls_answered(messages: Sequence[Message]) -> Iterator[int | None]:
    """For each message the place of the one that made the calls that it belongs to: its own, or of
    the newest before it whose result it is. Ids may come again in every turn."""
    made: dict[str, int] = {}
    for place, message in enumerate(messages):
        made |= dict.fromkeys(filter(None, message.calls), place)
        yield place if message.calls else made.get(message.result_of)
