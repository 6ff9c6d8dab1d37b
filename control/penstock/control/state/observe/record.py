"""What a gateway decided about one request, and with which inputs: explain.proto in values. Pure.

The admin API shows these as they are: their fields' texts are the API's documents. Times within a
request are microseconds since it was read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_US: Final = 253_402_300_799_999_999  # of the calendar


def described(text: str, default: Any = 0) -> Any:
    """A field with what it says."""
    return field(default=default, metadata={"description": text})


def moment(since_1970_us: int) -> datetime:
    """A gateway's clock may be anywhere: what is beyond the calendar becomes its edge."""
    return _EPOCH + timedelta(microseconds=min(max(since_1970_us, 0), _LAST_US))


def microseconds(at: datetime) -> int:
    """Since 1970; what was before counts as then."""
    return max((at - _EPOCH) // timedelta(microseconds=1), 0)


class Way(StrEnum):
    """How a request came to a deployment."""

    NAMED = "named"  # its client asked for it
    CANARY = "canary"  # it is in the share of a canary of the one that was asked
    RETURNED = "returned"  # its canary could not, or no rung: the one that was asked is to
    RUNG = "rung"  # of the ladder of the one that was asked


@dataclass(frozen=True, slots=True)
class QueueTurn:
    """What the estimate of a wait was made of, and what became of it."""

    estimated_wait_ms: int = 0
    ready: int = described("replicas")
    with_room: int = described("of these, those that could take it at once")
    running: int = described("requests of the deployment that had a place")
    work_before: int = described("of all that went before it, in token work")
    work_a_second: int = described(
        "the pace that calls were seen to run at, of all places together"
    )
    ahead_high: int = described("requests that waited when it came, of high priority")
    ahead_normal: int = described("likewise, of normal priority")
    ahead_low: int = described("likewise, of low priority")
    place: int = described("in the queue when it came, from 1; 0: it had a place at once")
    priority: str = described("that it was granted", "")
    waited_us: int = described("for places, before each attempt, here")

    @property
    def ahead(self) -> int:
        """That waited when it came."""
        return self.ahead_high + self.ahead_normal + self.ahead_low


@dataclass(frozen=True, slots=True)
class Stay:
    """A request at one deployment."""

    deployment: str = ""
    way: Way = Way.NAMED
    by: str = described("the alias or the split by which its name came here; empty: neither", "")
    adapter: str = described("`name@version`; empty: the base model", "")
    entered_us: int = 0
    prompt_estimate: int = described("tokens")
    completion_estimate: int = described("tokens that were reserved for the answer")
    turn: QueueTurn | None = field(
        default=None,
        metadata={
            "description": "as admission found the deployment; null: it was refused before that"
        },
    )
    left_for: str = described("why it could not be answered here; empty: it was", "")
    passed_over: bool = described("it was not even asked here", default=False)
    arm: str = described(
        "what it left, as logs name it, where that is a part of the deployment", ""
    )


@dataclass(frozen=True, slots=True)
class Look:
    """A replica that was looked at."""

    replica: str = ""
    load: int = described("requests that it had, as the choice counts them")
    verdict: str = described("`taken`, or why not", "")


@dataclass(frozen=True, slots=True)
class Pick:
    """A choice among replicas."""

    policy: str = ""
    looks: tuple[Look, ...] = described("those that were looked at, 8 at most", ())
    more: int = described("others of the deployment, that were not looked at or are left out")


@dataclass(frozen=True, slots=True)
class Attempt:
    """One call to a replica."""

    replica: str = ""
    reason: str = described("why it was made: `first`, `failover`, `again`, `resume:kill`, ...", "")
    pick: Pick | None = None
    sent_us: int = 0
    first_us: int = described("its first event; 0: none")
    ended_us: int = 0
    error: str = described("its code; empty: none", "")
    queued_us: int = described("in the engine, as it says; 0: it does not")
    prefill_us: int = 0
    decode_us: int = 0
    cached_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Leg:
    """What an engine did for a router program."""

    call: str = ""
    replica: str = ""
    tokens: int = described("whose KV was moved")
    took_us: int = 0
    failure: str = described("empty: it was done", "")


@dataclass(frozen=True, slots=True)
class Gap:
    """Over a second between two writes of a stream."""

    at_us: int = 0
    ms: int = 0


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One request that has ended."""

    # ---- whose it is
    request_id: str = ""
    client_request_id: str = described("the caller's own; empty: none", "")
    trace_id: str = described("32 hexadecimal digits", "")
    received_us: int = described("microseconds since 1970: when it had been read")
    path: str = ""
    tenant: str = described("empty: it came without a key", "")
    key_id: str = ""
    client: str = described(
        "the address that it came from; empty: not to be told, or not to this token", ""
    )
    model: str = described("as the request named it; empty: it named none", "")
    prompt_version: str = described("its `metadata.prompt_version`", "")

    # ---- how it ended
    status: int = described("what the client saw; 499: it left before")
    outcome: str = described("`succeeded`, `failed`, `rejected`, `cancelled` or `invalid`", "")
    error_code: str = described("empty: none", "")
    drop_reason: str = described("as the client was told it; empty: admission let it in", "")
    message: str = described("what its client was told; empty: no error", "")
    duration_us: int = 0
    phase_us: tuple[int, ...] = described("parse, resolve, admit, select, open, stream, settle", ())

    # ---- where it was
    stays: tuple[Stay, ...] = described("in their order; the last is where it ended", ())
    attempts: tuple[Attempt, ...] = described("in their order; of more than 12 the last ones", ())
    attempts_made: int = described("those that are left out included")
    canary: str = described("the name of the one that its deployment has; empty: none", "")
    of_candidate: bool = described("its arm", default=False)
    asked: str = described("the deployment that was asked for, where it is degraded", "")
    degraded: str = described("why the answer is not what was asked for; empty: it is", "")
    rung: str = described("that it is owed to: `trim`, `fallback:mini-2`", "")
    trimmed_messages: int = described("left out of the prompt")
    trimmed_tokens: int = 0
    program: str = described("what came of its router program; empty: none was asked", "")
    legs: tuple[Leg, ...] = described("that the program had engines do", ())
    shadows: tuple[str, ...] = described("rules by which it was repeated", ())
    suspect: bool = described("engines had died with it aboard: it ran apart", default=False)
    quarantined: bool = described("it was refused for that", default=False)

    # ---- the answer
    model_version: str = ""
    first_byte_us: int = described("0: none was handed to the client")
    events: int = described("server-sent events handed to the client")
    bytes: int = described("answer bytes handed to the client")
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    gaps: tuple[Gap, ...] = described("the longest 8", ())
    cost_nanousd: int = described("billionths of a US dollar; 0: it has no price")

    @property
    def received_at(self) -> datetime:
        """When it had been read."""
        return moment(self.received_us)

    @property
    def duration_ms(self) -> float:
        """From its reading to its end."""
        return self.duration_us / 1000

    @property
    def first_byte_ms(self) -> float | None:
        """When the client had the first byte of its answer; None: it had none."""
        return self.first_byte_us / 1000 if self.first_byte_us else None

    @property
    def deployment(self) -> str:
        """Where it ended; empty: nowhere."""
        return self.stays[-1].deployment if self.stays else ""

    @property
    def replica(self) -> str:
        """The last that it was sent to; empty: none."""
        return self.attempts[-1].replica if self.attempts else ""

    @property
    def reason(self) -> str:
        """Why it is not the answer that was asked for, in a word; empty: it is."""
        return self.drop_reason or self.error_code or self.degraded
