"""The head's metrics of money and tokens: of today, by deployment and tenant, or adapter."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, timedelta
from typing import Final

from prometheus_client.core import Metric

from penstock.control.errors import StoreUnavailable
from penstock.control.metrics import head_table as table
from penstock.control.metrics.declared import DeclaredMetric
from penstock.control.state.cluster import ClusterView
from penstock.control.state.tenancy.spend import NANO
from penstock.control.state.tenancy.usage import Counts, UsageRow, added
from penstock.control.store.usage import UsageStore
from penstock.control.supervision.clock import Clock

log = logging.getLogger(__name__)

READ_LIMIT: Final = timedelta(seconds=3)
MOST_LABELS: Final = 200
OTHERS: Final = "_other"
WITHOUT_KEY: Final = "-"
_Sums = Mapping[tuple[str, str], Counts]  # by deployment, and tenant or adapter
_KINDS: Final = ("prompt", "cached", "completion")


class FirstLabels:
    """The first words that are seen, until they are given back; all later ones together. Any
    thread."""

    def __init__(self, most: int = MOST_LABELS) -> None:
        self._most = most
        self._seen: set[str] = set()
        self._lock = threading.Lock()

    def of(self, word: str) -> str:
        """The word, or that for all others."""
        with self._lock:
            if word in self._seen:
                return word
            if len(self._seen) >= self._most:
                return OTHERS
            self._seen.add(word)
            return word

    def knows(self, word: str) -> bool:
        """Whether it is one of the first."""
        with self._lock:
            return word in self._seen

    def keep(self, words: Collection[str]) -> None:
        """Gives back all but these."""
        with self._lock:
            self._seen &= set(words)


class UsageToday:
    """What is stored of today, read when it is asked for; `rows` is called from any thread but the
    loop's."""

    def __init__(self, store: UsageStore, clock: Clock, loop: asyncio.AbstractEventLoop) -> None:
        self._store = store
        self._clock = clock
        self._loop = loop

    def rows(self) -> list[UsageRow]:
        """Of this day of UTC; none where it cannot be read in time."""
        reading = self._read()
        try:
            future = asyncio.run_coroutine_threadsafe(reading, self._loop)
        except RuntimeError:  # the loop is closed
            reading.close()
            return []
        try:
            return future.result(READ_LIMIT.total_seconds())
        except (TimeoutError, StoreUnavailable) as error:
            future.cancel()
            log.debug("usage of today is not told: %s", error)
            return []

    async def _read(self) -> list[UsageRow]:
        today = self._clock.now().astimezone(UTC).date()
        return await self._store.usage(today, today)


class UsageMetrics:
    """Keeps which tenants, adapters and deployments that are no more have labels of their own.

    All sums begin anew with the day. Only then labels are given back, so that none of them falls or
    jumps in between: those of adapters, whose versions come and go, and of deployments.
    """

    def __init__(self, rows: Callable[[], Iterable[UsageRow]]) -> None:
        self._rows = rows
        self._tenants = FirstLabels()
        self._adapters = FirstLabels()
        self._deployments = FirstLabels()
        self._day = date.min

    def tenant(self, name: str) -> str:
        """The label of a tenant; empty: requests without a key."""
        return self._tenants.of(name) if name else WITHOUT_KEY

    def knows_tenant(self, name: str) -> bool:
        """Whether it has a label."""
        return self._tenants.knows(name)

    def adapter(self, name: str) -> str:
        """The label of an adapter's version."""
        return self._adapters.of(name)

    def collect(self, view: ClusterView) -> Iterator[Metric]:
        """All families. A deployment that was deleted today keeps its name until the day is over;
        those beyond the bound are told together."""
        by_tenant: dict[tuple[str, str], Counts] = {}
        by_adapter: dict[tuple[str, str], Counts] = {}
        rows = list(self._rows())
        self._begin_day(rows)
        for row in rows:
            label = self._deployments.of(row.of.deployment)
            deployment = row.of.deployment if row.of.deployment in view.deployments else label
            _add(by_tenant, (deployment, self.tenant(row.of.tenant)), row.counts)
            if row.of.adapter:
                _add(by_adapter, (deployment, self.adapter(row.of.adapter)), row.counts)
        yield _requests(table.TENANT_REQUESTS, by_tenant)
        yield _tokens(table.TENANT_TOKENS, by_tenant)
        yield _cost(table.TENANT_COST, by_tenant)
        yield _requests(table.ADAPTER_REQUESTS, by_adapter)
        yield _tokens(table.ADAPTER_TOKENS, by_adapter)
        yield _cost(table.ADAPTER_COST, by_adapter)

    def _begin_day(self, rows: Sequence[UsageRow]) -> None:
        day = max((row.day for row in rows), default=self._day)
        if day > self._day:
            self._day = day
            self._adapters.keep({row.of.adapter for row in rows})
            self._deployments.keep({row.of.deployment for row in rows})


def _add(sums: dict[tuple[str, str], Counts], key: tuple[str, str], counts: Counts) -> None:
    sums[key] = added(counts, sums.get(key, Counts()))


def _requests(metric: DeclaredMetric, sums: _Sums) -> Metric:
    return metric.each((key, counts.requests) for key, counts in sums.items())


def _tokens(metric: DeclaredMetric, sums: _Sums) -> Metric:
    return metric.each(
        ((*key, kind), getattr(counts, f"{kind}_tokens"))
        for key, counts in sums.items()
        for kind in _KINDS
    )


def _cost(metric: DeclaredMetric, sums: _Sums) -> Metric:
    return metric.each((key, counts.cost_nanousd / NANO) for key, counts in sums.items())
