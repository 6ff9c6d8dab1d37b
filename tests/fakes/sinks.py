"""Events of a test, written as an engine writes them."""

from __future__ import annotations

from penstock.replica.engine import Sink
from penstock.replica.values import Chunk, Event, Failed, Finished, Head


def write(event: Event, sink: Sink) -> bool:
    """Writes the event; whether the sink wants to be waited for."""
    match event:
        case Head():
            sink.head(event)
        case Chunk():
            return sink.write(event.body, event.events, event.groups, event.tokens)
        case Finished():
            sink.finish(event)
        case Failed():
            sink.fail(event)
    return False
