"""Which blocks of a request are sent with which step."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from penstock.replica.vllm.microserving.orders import SEND, StepOrders
from penstock.replica.vllm.microserving.tracks import Reports, Tracks

_TOLD = {
    "job": "job",
    "lease": "lease",
    "nonce": "00",
    "fingerprint": "00",
    "ranks": [["127.0.0.1", 1]],
    "first": 1,
    "begin": 1,
    "end": 4,
}


def _request(**told: Any) -> Any:
    return SimpleNamespace(request_id="r", kv_transfer_params={SEND: {**_TOLD, **told}})


class _Steps:
    """An engine's steps of one request, whose blocks are 100, 101 ..., of ten tokens."""

    def __init__(self) -> None:
        self.reports = Reports(1)
        self.tracks = Tracks(10, self.reports)

    def step(self, before: int, tokens: int, *, new: bool = False, preempted: bool = False) -> Any:
        one = SimpleNamespace(req_id="r", num_computed_tokens=before)
        running = SimpleNamespace(
            req_ids=[] if new else ["r"], num_computed_tokens=[] if new else [before]
        )
        scheduled = SimpleNamespace(
            preempted_req_ids={"r"} if preempted else None,
            scheduled_new_reqs=[one] if new else [],
            scheduled_cached_reqs=running,
            num_scheduled_tokens={"r": tokens} if tokens else {},
        )
        manager = SimpleNamespace(get_block_ids=lambda _: ([*range(100, 110)],))
        return self.tracks.step(scheduled, manager)


def test_what_was_found_goes_with_what_is_computed_since_the_same_step_may_compute_it() -> None:
    steps = _Steps()
    steps.tracks.allocated(_request())
    (send,) = steps.step(20, 15, new=True).sends
    assert (send.blocks, send.last) == ([(101, 0), (102, 1)], False)
    (send,) = steps.step(35, 6).sends
    assert (send.blocks, send.last) == ([(103, 2)], True)
    assert steps.step(41, 1).sends == []


def test_what_was_preempted_is_sent_again() -> None:
    steps = _Steps()
    steps.tracks.allocated(_request())
    steps.step(0, 30, new=True)
    orders = steps.step(0, 0, preempted=True)
    assert (orders.preempted, orders.sends) == (["r"], [])
    (send,) = steps.step(20, 21, new=True).sends
    assert (send.blocks, send.last) == ([(101, 0), (102, 1), (103, 2)], True)


def test_blocks_stay_until_they_are_sent_and_what_is_given_up_is_dropped() -> None:
    steps = _Steps()
    steps.tracks.allocated(_request())
    steps.step(0, 30, new=True)
    assert steps.tracks.finished(_request())
    orders = steps.step(0, 0)
    assert (orders.ended, orders.dropped) == (["r"], ["r"])
    assert steps.step(0, 0) == StepOrders()


def test_a_request_that_was_never_computed_keeps_no_blocks_and_nobody_waiting() -> None:
    steps = _Steps()
    waiting = steps.reports.wait("job")
    assert not steps.tracks.finished(_request())
    assert waiting.result(0)["error"] == "transfer"


def test_what_cannot_be_followed_is_given_up_and_the_step_goes_on() -> None:
    steps = _Steps()
    steps.tracks.allocated(_request())
    orders = steps.tracks.step(SimpleNamespace(preempted_req_ids=None), None)
    assert (orders.sends, orders.dropped) == ([], ["r"])


def test_a_transfer_is_done_when_all_ranks_are_and_broken_when_one_is() -> None:
    reports = Reports(2)
    whole, broken = reports.wait("a"), reports.wait("b")
    done = {"error": "", "message": "", "bytes": 5, "seconds": 0.5}
    assert reports.add("a", done) is None
    assert not whole.done()
    assert reports.add("a", {**done, "seconds": 0.7}) is not None
    assert (whole.result(0)["bytes"], whole.result(0)["seconds"]) == (10, 0.7)
    reports.add("b", {**done, "error": "transfer", "message": "cut"})
    assert broken.result(0)["message"] == "cut"
    assert reports.add("b", done) is None
    assert len(reports) == 0
