"""Whose requests may be in the engine: how many sequences a tenant may have there at once.

The engine takes up to `max_num_seqs` sequences into each of its steps. With one tenant's hundreds
in them a newcomer finds no seat, and every running stream waits for long steps. So while several
tenants are about, each has so many seats as steps stay short with; what is more waits here, tenants
and the calls of each in turn. Pure: who calls passes the time, in seconds.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

from penstock.replica.vllm.guards.limits import MAX_CHOICES

_ABOUT_S: Final = 60.0
"""How long a tenant counts that has nothing here any more: who chats is back within that."""

_LEAST: Final = MAX_CHOICES
"""Seats that a tenant has in any case, and at first: as many as one request may have choices. Who
has no more than that never waits for others."""

_TARGET_S: Final = 0.06
"""How long a step may take. A newcomer waits for the one that runs, and for its own: with what
comes before and after that, its first token is there within a quarter of a second."""

_FEW: Final = 4
"""With no more sequences than that a step takes as long as the model does."""

_TIMES_UNDISTURBED: Final = 2.0
"""Where the model alone takes longer than the target, so many times as long may a step take: with
fewer seats it would hardly be shorter."""


class Limit:
    """Seats of a tenant: one more after each short step, fewer after a long one, at worst half
    (additive increase, multiplicative decrease). One long prompt so costs some steps' increase."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._least = min(_LEAST, most)
        self._undisturbed = 0.0
        self.seats = self._least

    def stepped(self, seconds: float, inside: int, *, holds: bool, wanted: bool) -> None:
        """A step of the engine with so many sequences inside.

        `holds`: no tenant has more than the limit; until then a cut has not shown what it does.
        `wanted`: somebody waits for seats.
        """
        if inside <= _FEW:
            self._learn(seconds)
        target = max(_TARGET_S, _TIMES_UNDISTURBED * self._undisturbed)
        if seconds > target and holds:
            share = max(target / seconds, 0.5)
            self.seats = max(self._least, int(self.seats * share))
        elif seconds <= target and wanted:
            self.seats = min(self._most, self.seats + 1)

    def _learn(self, seconds: float) -> None:
        """Soon believes that it is quick, slowly that it is not: some steps have long prompts."""
        known = self._undisturbed or seconds
        self._undisturbed = known + (seconds - known) / (4 if seconds < known else 256)


@dataclass(slots=True, eq=False)
class Ticket:
    """A request that wants seats for its sequences, in one piece. `taken`: those that it has;
    `unread`: tokens that the engine has still to read for it."""

    tenant: Hashable
    call: Hashable
    wants: int = 1
    priority: int = 0
    tokens: int = 0  # of its prompt
    taken: int = 0
    unread: int = 0

    @property
    def reads(self) -> int:
        """Tokens that the engine has to read for it: each sequence has its prompt."""
        return self.wants * self.tokens


_Calls = dict[Hashable, dict[Ticket, None]]


class Seats:
    """Who is in the engine and who waits.

    - A tenant that is alone, and was so for a minute, fills the engine, and its queue by an eighth.
    - Else each may have the limit, and all together leave an eighth of the engine to those who have
      less than their share. Nor has any more prompts there that are still to be read than one step
      takes: what the engine has begun with goes before a newcomer, however short that is.
    - Who has nothing inside goes at once, whatever it wants: so whoever waits has something inside,
      whose end makes room.
    - The lowest priority number goes first; of one priority tenants take turns, and each one's
      calls.
    """

    def __init__(self, most: int, step_tokens: int = 1 << 30) -> None:
        """`most`: sequences of the engine; `step_tokens`: of prompts that a step takes."""
        self._most = most
        self._step_tokens = step_tokens
        self._unread = Counter[Hashable]()
        self._spare = min(max(1, most // 8), most - 1)
        self._limit = Limit(most)
        self._inside = Counter[Hashable]()
        self._waiting: dict[int, dict[Hashable, _Calls]] = {}
        self._here = Counter[Hashable]()
        self._gone: dict[Hashable, float] = {}  # when, the earliest first
        self.inside = 0
        self.waiting = 0  # sequences
        self.waiting_tokens = 0  # of their prompts, once for each sequence, as vLLM counts them

    @property
    def limit(self) -> int:
        """How many sequences each of several tenants may have inside."""
        return self._limit.seats

    def ask(self, ticket: Ticket) -> None:
        """The request waits from now on, until `ready` names it."""
        self._here[ticket.tenant] += 1
        self._gone.pop(ticket.tenant, None)
        tenants = self._waiting.setdefault(ticket.priority, {})
        tenants.setdefault(ticket.tenant, {}).setdefault(ticket.call, {})[ticket] = None
        self._count_waiting(ticket, 1)

    def ready(self, now: float) -> list[Ticket]:
        """Takes the seats of those who may go now; the first to go first."""
        about = self._about(now)
        going: list[Ticket] = []
        stopped = set[Hashable]()
        for priority in sorted(self._waiting):
            tenants = deque(self._waiting[priority])
            while tenants:
                tenant = tenants.popleft()
                if tenant in stopped:
                    continue
                ticket = self._first(priority, tenant)
                if not self._fits(ticket, about):
                    stopped.add(tenant)
                    continue
                self._seat(ticket)
                going.append(ticket)
                if tenant in self._waiting.get(priority, ()):
                    tenants.append(tenant)
        return going

    def was_read(self, ticket: Ticket) -> None:
        """The engine has read its prompt."""
        self._unread[ticket.tenant] -= ticket.unread
        ticket.unread = 0
        if not self._unread[ticket.tenant]:
            del self._unread[ticket.tenant]

    def give_back(self, ticket: Ticket, seats: int) -> None:
        """So many of its sequences are in the engine no more."""
        seats = min(seats, ticket.taken)
        ticket.taken -= seats
        if not ticket.taken:
            self.was_read(ticket)
        self.inside -= seats
        self._inside[ticket.tenant] -= seats
        if not self._inside[ticket.tenant]:
            del self._inside[ticket.tenant]

    def forget(self, ticket: Ticket, now: float) -> None:
        """The request has ended, wherever it was. Once for each that has asked."""
        if ticket in self._waiting.get(ticket.priority, {}).get(ticket.tenant, {}).get(
            ticket.call, {}
        ):
            self._take_out(ticket)
        self.give_back(ticket, ticket.taken)
        self._here[ticket.tenant] -= 1
        if not self._here[ticket.tenant]:
            del self._here[ticket.tenant]
            self._gone[ticket.tenant] = now

    def stepped(self, seconds: float, now: float) -> None:
        """The engine has made a step, which took so long."""
        shared = self._about(now) > 1
        holds = max(self._inside.values(), default=0) <= self.limit
        self._limit.stepped(
            seconds, self.inside, holds=shared and holds, wanted=shared and self.waiting > 0
        )

    def _about(self, now: float) -> int:
        """Tenants that are here, or were so lately."""
        for tenant, since in list(self._gone.items()):
            if now - since < _ABOUT_S:
                break
            del self._gone[tenant]
        return len(self._here) + len(self._gone)

    def _fits(self, ticket: Ticket, about: int) -> bool:
        has = self._inside.get(ticket.tenant, 0)
        if not has:
            return True
        with_it, all_with_it = has + ticket.wants, self.inside + ticket.wants
        if about == 1:
            return all_with_it <= self._most + self._most // 8
        unread = self._unread.get(ticket.tenant, 0)
        if with_it > self.limit or (unread and unread + ticket.reads > self._step_tokens):
            return False
        within_share = with_it <= self._most // about
        return all_with_it <= self._most - (0 if within_share else self._spare)

    def _first(self, priority: int, tenant: Hashable) -> Ticket:
        calls = self._waiting[priority][tenant]
        return next(iter(next(iter(calls.values()))))

    def _seat(self, ticket: Ticket) -> None:
        """Seats who waits; its tenant and its call then stand last."""
        self._take_out(ticket, last=True)
        ticket.taken = ticket.wants
        ticket.unread = ticket.reads
        self._unread[ticket.tenant] += ticket.unread
        self.inside += ticket.wants
        self._inside[ticket.tenant] += ticket.wants

    def _take_out(self, ticket: Ticket, *, last: bool = False) -> None:
        """Takes it out of those who wait, and leaves nothing empty behind."""
        tenants = self._waiting[ticket.priority]
        calls = tenants[ticket.tenant]
        del calls[ticket.call][ticket]
        _settle(calls, ticket.call, last=last)
        _settle(tenants, ticket.tenant, last=last)
        if not tenants:
            del self._waiting[ticket.priority]
        self._count_waiting(ticket, -1)

    def _count_waiting(self, ticket: Ticket, sign: int) -> None:
        self.waiting += sign * ticket.wants
        self.waiting_tokens += sign * ticket.wants * ticket.tokens


def _settle(places: dict[Hashable, _Calls] | _Calls, key: Hashable, *, last: bool) -> None:
    """Drops what is empty, and puts it last where that is due."""
    if not places[key]:
        del places[key]
    elif last:
        places[key] = places.pop(key)  # type: ignore[assignment]
