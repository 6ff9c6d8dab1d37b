"""A recording on its way to gateways and to the comparer."""

from __future__ import annotations

from penstock.control.rpc.recording_wire import (
    recording_order,
    recording_order_message,
    recording_rule,
    recording_standing,
)
from penstock.control.state.recording.orders import RecordingRoute, order_of
from penstock.control.state.recording.recordings import Recording
from penstock.control.state.recording.spec import RecordingSpec, RecordUntil
from penstock.control.state.shadow.spec import Primary, Record, Sample
from penstock.v1 import comparer_pb2
from tests.fakes.control_values import NOON

SPEC = RecordingSpec(
    "r",
    Primary("chat", "pirate"),
    125,
    sample=Sample.SESSION,
    tenants=("acme",),
    until=RecordUntil(requests=7, mib=2),
    record=Record.FULL,
)
RECORDING = Recording(SPEC, "u1", 2**63 - 1, NOON)


def test_a_rule_asks_nobody_and_says_whose_requests_are_recorded() -> None:
    rule = recording_rule(RecordingRoute(RECORDING, ("/v1/completions",)))
    assert (rule.uid, rule.name, rule.seed, rule.candidate) == ("u1", "r", 2**63 - 1, "")
    assert (rule.primary, rule.primary_alias) == ("chat", "pirate")
    assert (rule.share_permille, rule.by_session, rule.self_permille) == (125, True, 0)
    assert (list(rule.tenants), list(rule.endpoints)) == (["acme"], ["/v1/completions"])


def test_an_order_comes_to_the_comparer_as_it_was() -> None:
    order = order_of(RECORDING)
    assert (order.most_requests, order.most_bytes, order.ended) == (7, 2 << 20, False)
    assert recording_order(recording_order_message(order)) == order


def test_a_standing_comes_back_as_it_was() -> None:
    told = comparer_pb2.RecordingStanding(
        uid="u1", requests=5, bytes=90, kept=4, unreadable=1, left_out={"over": 2}
    )
    assert recording_standing(told) == ("u1", 5, 90, 4, 1, {"over": 2})
