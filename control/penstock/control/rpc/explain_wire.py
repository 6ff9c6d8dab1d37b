"""Messages of explain.proto to values of `state/observe` and back."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, Final

from penstock.control.declared.messages import members_of, message_of, value_of
from penstock.control.managers.observe.link import Question, Reply
from penstock.control.state.observe.asking import RequestFilter
from penstock.control.state.observe.record import (
    Attempt,
    Gap,
    Leg,
    Look,
    Pick,
    QueueTurn,
    RequestRecord,
    Stay,
    Way,
)
from penstock.v1 import explain_pb2

log = logging.getLogger(__name__)

# A record of all that it may have at its longest is some 8 KiB.
MOST_BYTES: Final = 32 << 10
MOST: Final = 16  # parts of one kind in a record
_WAYS: Final = members_of(explain_pb2.Stay.Way.DESCRIPTOR, Way)


def question(value: Question) -> explain_pb2.ExplainQuestion:
    """A question as the gateway reads it."""
    asked: dict[str, Any] = {"number": value.number}
    if value.list:
        asked["list"] = _filter(value.list)
    elif value.tail:
        asked["tail"] = _filter(value.tail)
    elif value.forget:
        asked["forget"] = value.forget
    else:
        asked["id"] = value.id
    return explain_pb2.ExplainQuestion(**asked)


def _filter(value: RequestFilter) -> explain_pb2.RequestFilter:
    return message_of(explain_pb2.RequestFilter, value)


def reply(message: explain_pb2.ExplainReply, gateway: str) -> Reply:
    """A part of an answer of this gateway. A record that is none is left out, and told of."""
    return value_of(Reply, message, records=_records(message, gateway), count=len(message.records))


def _records(message: explain_pb2.ExplainReply, gateway: str) -> Iterator[RequestRecord]:
    for each in message.records:
        if (size := each.ByteSize()) <= MOST_BYTES:
            yield request_record(each)
        else:
            log.warning("a record is no record", extra={"gateway": gateway, "bytes": size})


def request_record(message: explain_pb2.RequestRecord) -> RequestRecord:
    """What a gateway decided about a request."""
    return value_of(
        RequestRecord,
        message,
        trace_id=message.trace_id.hex(),
        phase_us=tuple(message.phase_us[:MOST]),
        stays=tuple(map(_stay, message.stays[:MOST])),
        attempts=tuple(map(_attempt, message.attempts[:MOST])),
        legs=tuple(value_of(Leg, each) for each in message.legs[:MOST]),
        gaps=tuple(value_of(Gap, each) for each in message.gaps[:MOST]),
        shadows=tuple(message.shadows[:MOST]),
    )


def _stay(message: explain_pb2.Stay) -> Stay:
    """A way that this version does not know is as though it had been named."""
    turn = value_of(QueueTurn, message.turn) if message.HasField("turn") else None
    return value_of(Stay, message, way=_WAYS.get(message.way, Way.NAMED), turn=turn)


def _attempt(message: explain_pb2.Attempt) -> Attempt:
    pick = _pick(message.pick) if message.HasField("pick") else None
    return value_of(Attempt, message, pick=pick)


def _pick(message: explain_pb2.Pick) -> Pick:
    looks = tuple(value_of(Look, each) for each in message.looks[:MOST])
    return value_of(Pick, message, looks=looks)
