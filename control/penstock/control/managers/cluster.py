"""Holds the view of this moment, replaced whole at each change, and tells who listens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from operator import attrgetter

from penstock.control.managers.liveness import LivenessTable
from penstock.control.state.cluster import ClusterView

Projection = Callable[[ClusterView], tuple[object, ...]]


_PARTS = attrgetter(*(each.name for each in fields(ClusterView) if each.compare))


class Cluster:
    """Holds the current view; everything else reads it or asks for a change.

    One thread only. Listeners run at once, inside the change, and must be quick: the managers'
    listeners set an event.
    """

    def __init__(self, view: ClusterView | None = None) -> None:
        self._view = view or ClusterView()
        self._listeners: list[tuple[Callable[[], None], Projection]] = []
        self.liveness = LivenessTable()

    def view(self) -> ClusterView:
        """The view of this moment."""
        return self._view

    def replace(self, view: ClusterView) -> ClusterView:
        """Makes this the view and tells the listeners; nothing happens where nothing changed."""
        old = self._view
        if view is old or _alike(everything(old), everything(view)):
            return old
        self._view = view
        for listener, of in tuple(self._listeners):
            if not _alike(of(old), of(view)):
                listener()
        return view

    def listen(
        self, listener: Callable[[], None], of: Projection | None = None
    ) -> Callable[[], None]:
        """Calls the listener after each change, until the returned function is called.

        With `of`, only after changes of what it gives of a view.
        """
        entry = (listener, of or everything)
        self._listeners.append(entry)
        return lambda: self._listeners.remove(entry)


def everything(view: ClusterView) -> tuple[object, ...]:
    """All that a view says."""
    found: tuple[object, ...] = _PARTS(view)
    return found


def _alike(one: tuple[object, ...], other: tuple[object, ...]) -> bool:
    return all(a is b or a == b for a, b in zip(one, other, strict=True))
