"""What the engine of all providers and each provider tell each other: values and a Protocol."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any, Final, Protocol

from penstock.replica.providers.account import Account
from penstock.replica.values import Call, Failed


@dataclass(frozen=True, slots=True)
class Ask:
    """A call whose body was read as a JSON object."""

    call: Call
    body: dict[str, Any]
    created: int  # of the answer: seconds since 1970
    trimmed_messages: int = 0  # left out of the conversation, as `Call.trim` allows
    trimmed_tokens: int = 0  # that it has fewer for it, estimated

    @property
    def stream(self) -> bool:
        """Whether the answer is one of server-sent events."""
        return self.body.get("stream") is True


@dataclass(frozen=True, slots=True)
class Piece:
    """Answer bytes: whole server-sent events, or the whole unary body."""

    body: bytes
    events: int = 1
    tokens: int = 0  # made since the piece before, as far as that is known


@dataclass(frozen=True, slots=True)
class Place:
    """Where a provider listens."""

    host: str
    port: int
    tls: bool


HEARD: Final = Piece(b"", events=0)
"""The provider gave a sign of life that is nothing for the client."""


class ProviderFailed(Exception):
    """A call's failure. `again`: another attempt, here and soon, may go better."""

    def __init__(self, failed: Failed, *, again: bool = False) -> None:
        super().__init__(failed.message)
        self.failed = failed
        self.again = again


class Broken(Exception):
    """There was no connection to a provider, or it broke. `str()` says which, in our words. `sent`:
    the request may have come to it."""

    def __init__(self, why: str, *, sent: bool = True) -> None:
        super().__init__(why)
        self.sent = sent


class TooLarge(Exception):
    """An answer has more bytes than it may have."""


class Provider(Protocol):
    """Whoever answers. Used on one loop."""

    @property
    def name(self) -> str:
        """The engine's name: "openai"."""

    @property
    def version(self) -> str:
        """Of the code that speaks with it."""

    @property
    def endpoints(self) -> tuple[str, ...]:
        """Paths that it serves, by their first names."""

    @property
    def place(self) -> Place | None:
        """Where it is reached; none: it is in this process."""

    def answer(self, ask: Ask, account: Account) -> AsyncGenerator[Piece, None]:
        """One attempt. Says in the account what is known of the costs. Raises `ProviderFailed`,
        `Broken` or `TooLarge`; an end without that is the answer's true end. Closing it lets go of
        the provider."""

    async def close(self) -> None:
        """Lets go of everything."""
