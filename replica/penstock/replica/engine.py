"""What a replica needs of an engine, as values and two Protocols.

An engine writes each answer into the `Sink` that comes with the call. Values only: no I/O, no grpc,
no vllm. `bridge.py` turns native calls into `Call`s, and its sinks carry the answers back; `vllm/`
implements `Engine` with the real one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Literal, Protocol

if TYPE_CHECKING:
    from penstock.replica.adapter_table import AdapterTable


@dataclass(frozen=True, slots=True)
class TokenGroup:
    """Tokens that the engine produced for one choice in one output."""

    choice: int
    token_ids: tuple[int, ...]
    finish_reason: str = ""
    stop_reason: str = ""


@dataclass(frozen=True, slots=True)
class Resume:
    """What the client already has of an answer that another replica began."""

    groups: tuple[TokenGroup, ...]
    events: int
    created: int
    cached_tokens: int


BEFORE_ALL: Final = -(1 << 31)
"""The priority of the replica's own requests, lower and so earlier than any client's."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request as the gateway sent it; fields as in inference.proto, `CallRequest`."""

    request_id: str
    path: str
    body: bytes
    model: str
    method: str = "POST"
    adapter: str = ""
    adapter_digest: str = ""
    adapter_wait_ms: int = 0
    priority: int = 0
    deadline_ms: int = 0
    tenant_salt: str = ""
    traceparent: str = ""
    token_groups: bool = False
    resume: Resume | None = None
    max_prompt_tokens: int = 0
    max_completion_tokens: int = 0
    trim: bool = False
    tenant: str = ""
    input_price: int = 0
    output_price: int = 0
    cached_price: int = 0


@dataclass(frozen=True, slots=True)
class Head:
    """The answer's HTTP status (2xx) and content type, sent with or before the first chunk."""

    status: int
    content_type: str
    prompt_tokens: int = 0
    cached_tokens: int = 0
    queue_wait_us: int = 0
    trimmed_messages: int = 0  # left out of the prompt, as `Call.trim` allows
    trimmed_tokens: int = 0  # that the prompt has fewer for it


@dataclass(frozen=True, slots=True)
class Chunk:
    """Answer bytes, verbatim: whole SSE events, or the whole unary body."""

    body: bytes
    events: int = 1
    groups: tuple[TokenGroup, ...] = ()
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Finished:
    """The answer is complete; durations in microseconds, 0 where not measured."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0
    queue_us: int = 0
    prefill_us: int = 0
    decode_us: int = 0
    finish_reasons: tuple[str, ...] = ()
    adapter: str = ""
    cost_nanousd: int = 0
    provider_request_id: str = ""  # what a managed provider calls the request


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that a call cost; fields as in common.proto, `Usage`."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cost_nanousd: int = 0  # billionths of a US dollar; 0: nothing, or no prices


FailureFault = Literal["client", "upstream", "operator"]
"""Who can mend it: who asked, nobody (another attempt may do), who runs the deployment."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The call failed; fields as in common.proto, `ErrorDetail`."""

    status: int
    type: str
    code: str
    message: str
    param: str = ""
    fault: FailureFault = "upstream"
    retryable: bool = False
    retry_after_ms: int = 0


Event = Head | Chunk | Finished | Failed


@dataclass(frozen=True, slots=True)
class Death:
    """Why an engine died, in one line. `killed`: from outside, or for want of memory, for which
    there are more reasons than the calls that it had."""

    reason: str
    killed: bool = False

    def __str__(self) -> str:
        return self.reason

    @property
    def code(self) -> str:
        """Of the calls that fail by it: gateways go by it, clients never see it."""
        return "engine_killed" if self.killed else "engine_dead"


class EngineKind(StrEnum):
    """What comes out of an engine. Each kind has a deep check of its own (`health.py`)."""

    TEXT = "text"  # it generates tokens
    VECTORS = "vectors"  # it pools: embeddings, scores, classes; it cannot generate
    PROVIDER = "provider"  # another party answers for it, and charges for each answer


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """What is known of an engine once it is loaded."""

    backend: str
    backend_version: str
    model_version: str
    max_model_len: int
    max_running: int
    config_hash: str
    endpoints: tuple[str, ...] = ()  # paths that the model serves, by their first names
    model: str = ""  # path, hub id or the provider's id of the model that answers


@dataclass(frozen=True, slots=True)
class LoadFigures:
    """A moment of an engine: counts of sequences and tokens now, and totals since its start.

    An engine that cannot tell of steps leaves them at 0: then only its probe shows that it gets on.
    """

    running: int = 0
    waiting: int = 0
    waiting_tokens: int = 0  # of their prompts
    kv_usage: float = 0.0
    kv_blocks: int = 0  # 0: not known
    kv_blocks_used: int = 0
    prefix_queries: int = 0
    prefix_hits: int = 0
    tokens: int = 0
    prompt_tokens: int = 0  # computed, cached ones not counted
    preemptions: int = 0
    steps: int = 0
    step_us: int = 0  # microseconds of the last step; 0: not known


@dataclass(frozen=True, slots=True)
class AdapterSource:
    """An adapter version and where its weights are from; fields as in `Adapter` on the wire."""

    name: str  # engine name, "name@version"
    source: str = ""  # an absolute directory or a shipped name; empty: the content of this digest
    digest: str = ""  # of its content; empty: not known yet
    pinned: bool = False  # makes room for nobody


class EngineError(Exception):
    """An engine that cannot do what was asked. `str()` is one line for a person."""


class CannotLoad(EngineError):
    """The model or an adapter cannot be loaded, and trying again would not help."""


class Sink(Protocol):
    """Where an engine writes the answer to one call: a head, bodies, and one end.

    The first `finish` or `fail` is the end; whatever is written after it is dropped, and so is
    everything once the client is gone. All methods but `room` return at once. Used on the loop's
    thread only.
    """

    def head(self, head: Head) -> None:
        """The answer begins. Before the first `write`; not before a `fail` alone."""
        ...

    def write(
        self, body: bytes, events: int = 1, groups: tuple[TokenGroup, ...] = (), tokens: int = 0
    ) -> bool:
        """Answer bytes, verbatim: whole SSE events, or the whole unary body; `tokens` were made
        since the write before. True where the client is slower than the engine, or gone: then
        await `room` before the next."""
        ...

    async def room(self) -> None:
        """Returns when there is room for more, or nobody wants any; after a turn of the loop."""
        ...

    def finish(self, finished: Finished) -> None:
        """The answer is complete."""
        ...

    def fail(self, failed: Failed) -> None:
        """The answer ends here, for this reason."""
        ...

    def costs(self, usage: Callable[[], Usage | None]) -> None:
        """Names what tells what the call has cost so far; None: the engine never had it, and its
        end is not the call's doing, as where nothing was named. It is asked where the call fails;
        where its client does not want the rest, once `Engine.answer` has ended."""
        ...

    def when_gone(self, leave: Callable[[], None]) -> None:
        """Names what is to be done when the client is gone. `leave` has to bring `Engine.answer` to
        its end soon. Without one the task that runs `Engine.answer` is cancelled."""
        ...


class Engine(Protocol):
    """An engine that answers calls in this process's asyncio loop.

    `start` must have returned before anything else is called; `stop` may be called at any time.
    """

    async def start(self) -> EngineFacts:
        """Loads the model and its adapters and warms up. Raises `CannotLoad`."""
        ...

    async def answer(self, call: Call, sink: Sink) -> None:
        """Writes the answer into the sink; returns when it has ended it, or the client is gone.

        Never raises for a bad request or a dead engine: both are a `fail`. An answer that returns
        without an end, or raises, is failed by whoever owns the sink. When the client is gone the
        engine works no longer on the call. While there is no room it makes no more than it must.
        """
        ...

    def load(self) -> LoadFigures:
        """Instant, callable at any time."""
        ...

    def watch(self, changed: Callable[[], None]) -> None:
        """Has `changed` called on the loop's thread whenever a step changed the load. An engine
        whose native side tells of it does nothing here."""
        ...

    def cpu_seconds(self) -> float:
        """What all its processes have used; 0 where it cannot tell."""
        ...

    async def metrics(self) -> str:
        """The engine's own metrics as Prometheus text; empty where it has none."""
        ...

    def kind(self) -> EngineKind:
        """What comes out of it; known once it is loaded."""
        ...

    async def pool(self, text: str, *, priority: int = 0) -> int:
        """Runs one text through a model that pools, before all of a higher priority; returns how
        many finite numbers came out. Raises `EngineError`, also where the model only generates."""
        ...

    async def reach(self) -> None:
        """Returns when what answers for this engine takes connections. Costs nothing there. Raises
        `EngineError` that says what is in the way; an engine of this machine just returns."""
        ...

    async def probe(self) -> None:
        """Returns soon if the engine makes progress. Raises `EngineError` if it is dead; the caller
        times it, since a hung engine never answers."""
        ...

    async def died(self) -> Death:
        """Returns only when the engine is dead, with the reason."""
        ...

    @property
    def adapters(self) -> AdapterTable:
        """Its adapters. A call that tells the digest of one that is missing waits for its load."""
        ...

    async def stop(self) -> None:
        """Ends the engine and every process it started."""
        ...


__all__ = [
    "BEFORE_ALL",
    "AdapterSource",
    "Call",
    "CannotLoad",
    "Chunk",
    "Death",
    "Engine",
    "EngineError",
    "EngineFacts",
    "EngineKind",
    "Event",
    "Failed",
    "Finished",
    "Head",
    "LoadFigures",
    "Resume",
    "Sink",
    "TokenGroup",
    "Usage",
]
