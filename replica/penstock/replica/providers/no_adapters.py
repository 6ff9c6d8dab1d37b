"""The `Weights` of an engine that takes no adapters."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from penstock.replica.adapters.values import Prepared, Use
from penstock.replica.values import AdapterSource, EngineError


class NoWeights:
    """Takes none."""

    async def prepare(self, adapter: AdapterSource) -> Prepared:
        """Refuses."""
        raise EngineError(f"adapter {adapter.name}: a provider takes no adapters")

    async def add(self, prepared: Prepared) -> None:
        """Refuses."""
        raise EngineError(f"adapter {prepared.name}: a provider takes no adapters")

    async def remove(self, name: str) -> bool:
        """There is nothing to remove."""
        return True

    def close(self, name: str) -> None:
        """There is nothing to close."""

    def reopen(self, name: str) -> None:
        """There is nothing to open."""

    def uses(self) -> Mapping[str, Use]:
        """None."""
        return {}

    def tell_when_idle(self, names: Collection[str], tell: Callable[[], None]) -> None:
        """Nothing is ever in use."""
        tell()
