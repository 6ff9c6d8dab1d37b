"""What MicroServing's calls take and give; fields as in microserving.proto. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from penstock.replica.values import EngineError

Cause = Literal[
    "fingerprint",  # the two engines' KV does not fit
    "no_kv_capacity",  # no blocks that may be leased
    "no_lease",  # it is not there, or has ended
    "unsupported",  # by this engine, or of this prompt
    "transfer",  # it broke under way
    "bad_request",  # it makes no sense
    "deadline",  # it took too long
]
"""Why a call failed. Of all but the last three: the request is then computed plainly."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt, and what else goes into the hashes of its blocks."""

    token_ids: tuple[int, ...]
    adapter: str = ""
    adapter_digest: str = ""
    tenant_salt: str = ""
    mm_hashes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tokenized:
    """A prompt as the model's own template and tokenizer make it; hashes of its whole blocks."""

    prompt: Prompt
    length: int
    block_size: int
    block_hashes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class KvRank:
    """Where one rank of an engine takes KV."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class KvAddress:
    """Where KV may be written, and by whom."""

    lease: str
    nonce: bytes
    first_block: int
    blocks: int
    block_size: int
    fingerprint: str
    ranks: tuple[KvRank, ...]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A lease: its address, the tokens whose KV was there before, and `end` in whole blocks."""

    kv_addr: KvAddress
    matched_len: int
    end: int


@dataclass(frozen=True, slots=True)
class Sending:
    """What is to be computed here and moved to a lease elsewhere: `prompt[begin:end]`."""

    prompt: Prompt
    kv_addr: KvAddress
    begin: int
    end: int
    seq_id: str
    recv_rank: int = 0
    request_id: str = ""
    traceparent: str = ""
    priority: int = 0
    deadline_ms: int = 0
    tenant: str = ""


@dataclass(frozen=True, slots=True)
class Sent:
    """What was moved; of the prompt, `cached_tokens` were here already."""

    moved_tokens: int
    moved_bytes: int
    transfer_us: int
    cached_tokens: int


@dataclass(frozen=True, slots=True)
class Committed:
    """Tokens of the prompt whose KV is here now; of these, `matched_len` before the lease."""

    cached_len: int
    matched_len: int


@dataclass(frozen=True, slots=True)
class Found:
    """Tokens of a prompt whose KV is here, and blocks that are free."""

    matched_len: int
    block_size: int
    free_blocks: int


@dataclass(frozen=True, slots=True)
class MicroServingFigures:
    """A moment of what an engine leases and moves, and totals since its start."""

    leases: int = 0
    leased_blocks: int = 0
    transfers: int = 0  # under way, in and out
    bytes_in: int = 0
    bytes_out: int = 0
    seconds_in: float = 0.0
    seconds_out: float = 0.0
    failures: Mapping[str, int] = field(default_factory=dict)  # by cause


class MicroServingError(EngineError):
    """A call that could not be done: its cause, and a line for a person."""

    def __init__(self, cause: Cause, message: str) -> None:
        super().__init__(message)
        self.cause: Cause = cause
        self.message = message
