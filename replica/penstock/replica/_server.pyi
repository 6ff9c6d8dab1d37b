"""Types of the native extension; see native/module.cc. Messages travel serialised."""

from collections.abc import Mapping, Sequence
from typing import Any

Write = tuple[Any, ...]
"""A call's key, and a chunk's fields or a `CallEvent`; as in native/python_writes.h."""

def block_hashes(token_ids: Sequence[int], adapter: str, digest: str, salt: str) -> list[int]:
    """Of each whole block of a prompt, as the simulated engine caches them."""

class Inbox:
    """What the asyncio loop has to hear of; readable when there is something."""

    def fileno(self) -> int: ...
    def drain(self) -> list[tuple[int, int, bytes]]:
        """All items as (kind, key, payload); kinds as in `penstock.replica.calls.inbox.Kind`."""

class SimulatedEngine:
    """The simulated engine, on its own thread. `values`: every field of `SimulatedSettings` and
    backend_version, model, model_version, max_model_len."""

    def __init__(self, values: Mapping[str, int | float | str | bool], inbox: Inbox) -> None: ...
    def ask(self, key: int, request: bytes, internal: bool, /) -> None:
        """Starts a `CallRequest` of this process; its `CallEvent`s come by the inbox. An internal
        one takes no slot, and no fault strikes it."""
    def cancel_asked(self, key: int) -> None: ...
    def figures(self) -> tuple[int, int, int, int]:
        """Running, waiting, tokens since the start, KV blocks of what runs."""
    def add_adapter(self, name: str, digest: str) -> None:
        """Holds it, and goes on with the calls that waited for it."""
    def fail_parked(self, name: str, digest: str, error: bytes, all: bool) -> None:
        """Ends those calls with an `ErrorDetail`; not `all`: but for those that wait for room."""
    def remove_adapter(self, name: str) -> bool:
        """False: calls use it."""
    def close_adapter(self, name: str) -> None:
        """Calls for it wait as for one that is not held, until it is opened again or leaves."""
    def reopen_adapter(self, name: str) -> None: ...
    def wake_wrongly(self, what: str) -> None:
        """What is wrong with all answers from now on: "base", "adapter" or nothing."""

    def adapter_uses(self) -> list[tuple[str, int, float]]:
        """Of each adapter its name, the calls that use it, and seconds since its last use."""
    def tell_when_idle(self, names: set[str]) -> None:
        """The inbox hears once that the first of these is not in use any more."""
    def tokenize(self, request: bytes) -> tuple[tuple[int, ...], bytes]:
        """The ids of a `CallRequest`'s prompt; or none, and an `ErrorDetail`."""
    def matched_blocks(self, hashes: Sequence[int]) -> int:
        """How many of these blocks, from the first on, are in the prefix cache."""
    def add_blocks(self, hashes: Sequence[int]) -> None: ...
    def forget_blocks(self) -> None: ...
    def set_leased(self, blocks: int) -> None:
        """So many blocks are kept for KV that is to come."""
    def stop(self) -> None: ...

class InferenceServer:
    """The gRPC server. Serves from construction on; raises RuntimeError if it cannot listen."""

    def __init__(
        self, listen: str, inbox: Inbox, callers_token: str = "", keepalive_ms: int = 20_000
    ) -> None:
        """Every rpc has to carry this token, unless it is empty. A client that is silent for
        `keepalive_ms`, and for half as long again when asked for a sign of life, is gone."""
    @property
    def address(self) -> str:
        """host:port as bound."""
    def answer_with(self, engine: SimulatedEngine) -> None:
        """Calls go to this engine instead of the inbox. Only before the replica is ready."""
    def write_many(self, writes: list[Write]) -> tuple[list[int], list[int], list[int]]:
        """Hands writes to their calls by key. Returns the keys whose queue is full, those that
        nobody reads any more, and those that were failed since a write was not as it should be."""
    def set_load(self, load: bytes) -> None:
        """Publishes a `Load`; its state decides whether calls are taken."""
    def load(self) -> bytes:
        """The `Load` of this moment, as tools are told of it."""
    def running(self) -> int:
        """Calls that have not ended."""
    def fail_all(self, error: bytes) -> None:
        """Ends every running call with an `ErrorDetail`."""
    def reply(self, key: int, reply: bytes) -> None:
        """Answers a health, adapters or drain request."""
    def refuse(self, key: int, message: str) -> None:
        """Fails such a request with FAILED_PRECONDITION."""
    def stop(self, grace_ms: int) -> None: ...
