"""What a replica needs of an engine, as two Protocols; their values are in `values.py`.

An engine writes each answer into the `Sink` that comes with the call. `calls/bridge.py` turns
native calls into `Call`s, and its sinks carry the answers back; `vllm/` implements `Engine` with
the real one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from penstock.replica.adapters.table import AdapterTable
from penstock.replica.microserving.service import MicroServing
from penstock.replica.values import (
    Call,
    Death,
    EngineError,
    EngineFacts,
    EngineKind,
    Failed,
    Finished,
    Head,
    LoadFigures,
    TokenGroup,
    Usage,
)


class Sink(Protocol):
    """Where an engine writes the answer to one call: a head, bodies, and one end.

    The first `finish` or `fail` is the end; whatever is written after it is dropped, and so is
    everything once the client is gone. All methods but `room` return at once. Used on the loop's
    thread only.
    """

    def head(self, head: Head) -> None:
        """The answer begins. Before the first `write`; not before a `fail` alone."""

    def write(
        self, body: bytes, events: int = 1, groups: tuple[TokenGroup, ...] = (), tokens: int = 0
    ) -> bool:
        """Answer bytes, verbatim: whole SSE events, or the whole unary body; `tokens` were made
        since the write before. True where the client is slower than the engine, or gone: then
        await `room` before the next."""

    async def room(self) -> None:
        """Returns when there is room for more, or nobody wants any; after a turn of the loop."""

    def finish(self, finished: Finished) -> None:
        """The answer is complete."""

    def fail(self, failed: Failed) -> None:
        """The answer ends here, for this reason."""

    def costs(self, usage: Callable[[], Usage | None]) -> None:
        """Names what tells what the call has cost so far; None: the engine never had it, and its
        end is not the call's doing, as where nothing was named. It is asked where the call fails;
        where its client does not want the rest, once `Engine.answer` has ended."""

    def when_gone(self, leave: Callable[[], None]) -> None:
        """Names what is to be done when the client is gone. `leave` has to bring `Engine.answer` to
        its end soon. Without one the task that runs `Engine.answer` is cancelled."""


class Engine(Protocol):
    """An engine that answers calls in this process's asyncio loop.

    `start` must have returned before anything else is called; `stop` may be called at any time.
    """

    async def start(self) -> EngineFacts:
        """Loads the model and its adapters and warms up. Raises `CannotLoad`."""

    async def answer(self, call: Call, sink: Sink) -> None:
        """Writes the answer into the sink; returns when it has ended it, or the client is gone.

        Never raises for a bad request or a dead engine: both are a `fail`. An answer that returns
        without an end, or raises, is failed by whoever owns the sink. When the client is gone the
        engine works no longer on the call. While there is no room it makes no more than it must.
        """

    def load(self) -> LoadFigures:
        """Instant, callable at any time."""

    def watch(self, changed: Callable[[], None]) -> None:
        """Has `changed` called on the loop's thread whenever a step changed the load. An engine
        whose native side tells of it does nothing here."""

    def cpu_seconds(self) -> float:
        """What all its processes have used; 0 where it cannot tell."""

    async def metrics(self) -> str:
        """The engine's own metrics as Prometheus text; empty where it has none."""

    def kind(self) -> EngineKind:
        """What comes out of it; known once it is loaded."""

    async def pool(self, text: str, *, priority: int = 0) -> int:
        """Runs one text through a model that pools, before all of a higher priority; returns how
        many finite numbers came out. Raises `EngineError`, also where the model only generates."""

    async def reach(self) -> None:
        """Returns when what answers for this engine takes connections. Costs nothing there. Raises
        `EngineError` that says what is in the way; an engine of this machine just returns."""

    async def probe(self) -> None:
        """Returns soon if the engine makes progress. Raises `EngineError` if it is dead; the caller
        times it, since a hung engine never answers."""

    async def died(self) -> Death:
        """Returns only when the engine is dead, with the reason."""

    @property
    def adapters(self) -> AdapterTable:
        """Its adapters. A call that tells the digest of one that is missing waits for its load."""

    @property
    def microserving(self) -> MicroServing | None:
        """Moves its KV; None: it does not."""

    def sleepless(self) -> str:
        """Why it cannot be put to sleep; empty: it can."""

    async def sleep(self, level: int) -> None:
        """Gives back the memory of its accelerators; it has no calls. Raises `EngineError`."""

    async def wake(self) -> None:
        """Takes it back, and has forgotten all prefixes. What it answers then is for the caller to
        check, adapters are to be loaded anew. Raises `EngineError`."""

    def no_resume(self) -> str | None:
        """Why it goes on with no answer that another began, in one line for a person; empty: it
        does; None: not known yet, and what `watch` was given is called once it is."""

    def self_test_failed(self) -> bool:
        """Whether `no_resume` says so because its self-test failed: a fault, while other reasons
        are of its kind or its settings."""

    async def stop(self) -> None:
        """Ends the engine and every process it started."""


class Sleepless:
    """The part of an `Engine` that cannot be put to sleep."""

    def sleepless(self) -> str:
        """It cannot."""
        return "its engine has no sleep"

    async def sleep(self, level: int) -> None:
        """It cannot."""
        raise EngineError(self.sleepless())

    async def wake(self) -> None:
        """It never sleeps."""


class Unmoved:
    """The part of an `Engine` that moves no KV."""

    microserving: MicroServing | None = None


class Unresumed:
    """The part of an `Engine` that goes on with no answer of another."""

    def no_resume(self) -> str | None:
        """It does not."""
        return "its engine goes on with no answer that another began"

    def self_test_failed(self) -> bool:
        """It has none."""
        return False
