"""What an engine does for MicroServing, as a Protocol; its values are in `values.py`.

`start_generate` is no method of it: that is `Engine.answer` of a call with `Call.kv`. There an
engine commits the lease of `Call.kv.seq_id`, which ends when the request is first scheduled; where
there is no such lease, it computes plainly.
"""

from __future__ import annotations

from typing import Protocol

from penstock.replica.microserving.values import (
    Committed,
    Found,
    MicroServingFigures,
    Prepared,
    Prompt,
    Sending,
    Sent,
    Tokenized,
)
from penstock.replica.values import Call


class MicroServing(Protocol):
    """Moves KV between engines. Each method raises `MicroServingError` where it cannot."""

    async def tokenize(self, call: Call) -> Tokenized:
        """The prompt of a request, by the model's own template and tokenizer."""

    async def prep_recv(self, prompt: Prompt, end: int, seq_id: str, ttl_ms: int) -> Prepared:
        """Leases blocks for the KV of `prompt[:end]` that is not here; asked again, renews it."""

    async def remote_send(self, sending: Sending) -> Sent:
        """Computes and moves; returns when all has arrived. Cancelled, it stops sending."""

    async def commit(self, seq_id: str) -> Committed:
        """Closes the lease to its sender, and puts what has arrived into the prefix cache."""

    async def release(self, seq_id: str) -> None:
        """Ends the lease; ending what is not there succeeds."""

    async def lookup(self, prompt: Prompt) -> Found:
        """How much of the prompt's KV is here."""

    def figures(self) -> MicroServingFigures:
        """Instant, callable at any time."""
