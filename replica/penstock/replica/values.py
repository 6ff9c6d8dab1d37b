"""The values that calls, engines and all who carry their answers tell each other; their errors.

Values only: no I/O, no grpc, no vllm.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal, NamedTuple


class TokenGroup(NamedTuple):
    """Tokens that the engine produced for one choice in one output. A tuple: nearly all chunks
    bring one, and it costs half of what else would."""

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


@dataclass(frozen=True, slots=True)
class KvHint:
    """What a router program has prepared for a call. No value of it makes a wrong answer."""

    seq_id: str = ""  # of a lease of this replica; empty: none
    begin: int = 0  # tokens of the prompt whose KV may be expected here
    moved_tokens: int = 0  # of these, moved here for this call


BEFORE_ALL: Final = -(1 << 31)
"""The priority of the replica's own requests, lower and so earlier than any client's."""

BEHIND_ALL: Final = (1 << 31) - 1
"""Of those that can wait until no client does."""


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
    kv: KvHint | None = None


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
    kv_moved_tokens: int = 0  # of the prompt, moved here for this call; not in `cached_tokens`
    resumable: bool = False  # another replica could go on with it, given its groups
    created: int = 0  # what the answer says of it: seconds since 1970; 0: not known


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
    config_hash: str  # of all that decides an answer: equal ones go on with each other's
    endpoints: tuple[str, ...] = ()  # paths that the model serves, by their first names
    model: str = ""  # path, hub id or the provider's id of the model that answers
    settings_hash: str = ""  # as `config_hash`, whatever kind of device it runs on


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


@dataclass(frozen=True, slots=True)
class SleepSettings:
    """Whether a replica may sleep, and for how long one process may go on doing so."""

    level: int = 0  # 1: its weights wait in memory of the machine; 2: nowhere; 0: it may not
    cycles: int = 50  # after so many wakes a new process is to take its place
    growth_percent: int = 25  # and likewise where it holds so much more memory than after its first


class EngineError(Exception):
    """An engine that cannot do what was asked. `str()` is one line for a person."""


class CannotLoad(EngineError):
    """The model or an adapter cannot be loaded, and trying again would not help."""
