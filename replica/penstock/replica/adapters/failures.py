"""The adapters that could not be loaded the last time, and when to try again. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from penstock.replica.adapters.values import AdapterUnavailable
from penstock.replica.values import AdapterSource

_MOST: Final = 64  # that are remembered, the newest
_CALLS_AGAIN: Final = 1.0  # seconds until a call may have it tried again
_FIRST_PAUSE: Final = 1.0  # seconds before it is tried without a call; twice as long each time
_LONGEST_PAUSE: Final = 60.0


@dataclass(frozen=True, slots=True)
class Failure:
    """A load that failed."""

    name: str
    digest: str  # that was asked for
    error: AdapterUnavailable
    at: float
    times: int  # in a row

    def retry_at(self) -> float:
        """When it may be tried again without a call."""
        return self.at + min(_FIRST_PAUSE * 2.0 ** (self.times - 1), _LONGEST_PAUSE)


class Failures:
    """By name; `clock` gives seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._by_name: dict[str, Failure] = {}

    def note(self, adapter: AdapterSource, error: AdapterUnavailable) -> None:
        """It failed just now."""
        before = self._by_name.pop(adapter.name, None)
        same = before is not None and before.digest == adapter.digest
        times = before.times + 1 if before and same else 1
        self._by_name[adapter.name] = Failure(
            adapter.name, adapter.digest, error, self._clock(), min(times, 16)
        )
        while len(self._by_name) > _MOST:
            del self._by_name[next(iter(self._by_name))]

    def clear(self, name: str) -> None:
        """It is there, or nobody wants it any more."""
        self._by_name.pop(name, None)

    def raise_if_recent(self, adapter: AdapterSource) -> None:
        """Raises what a load of the same bytes raised less than a second ago."""
        failure = self._by_name.get(adapter.name)
        if failure is None or failure.digest != adapter.digest:
            return
        if self._clock() < failure.at + _CALLS_AGAIN:
            raise AdapterUnavailable(failure.error.code, str(failure.error))

    def pause(self, adapter: AdapterSource) -> float:
        """Seconds until it may be tried again without a call; 0: now."""
        failure = self._by_name.get(adapter.name)
        if failure is None or failure.digest != adapter.digest:
            return 0.0
        return max(0.0, failure.retry_at() - self._clock())

    def forgive(self, names: Iterable[str]) -> None:
        """These may be tried again at once."""
        for name in names:
            if failure := self._by_name.get(name):
                self._by_name[name] = Failure(
                    name, failure.digest, failure.error, failure.at - _LONGEST_PAUSE, 1
                )

    def all(self) -> tuple[Failure, ...]:
        """All that are remembered."""
        return tuple(self._by_name.values())
