"""A worker's half, step by step, with the socket on which its scheduler speaks with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from penstock.replica.vllm.microserving import control
from penstock.replica.vllm.microserving.orders import StepOrders, StepSend
from penstock.replica.vllm.microserving.working import Working
from tests.fakes.kv_memory import NONCE, Told, order, target
from tests.fakes.lazily import torch

_NAMES = ("one", "two")


@pytest.fixture(autouse=True, scope="module")
def needs_torch() -> None:
    pytest.importorskip("torch")


class _Worker:
    """With layers of six blocks, and what its scheduler hears."""

    def __init__(self, fill: float, *, by_layer: bool) -> None:
        self.layers: dict[str, Any] = {name: torch.full((6, 2, 8), fill) for name in _NAMES}
        self.half = Working(0, "127.0.0.1", by_layer=by_layer, transport="tcp")
        self.half.begin(self.layers, 6)
        told = self.half.told()
        self.port: int = told["port"]
        self.link = control.connected(told["name"], told["secret"])
        self.heard = Told()
        self.link.listen(self.heard, "test")

    def step(self, orders: StepOrders) -> set[str]:
        """As vLLM does one."""
        self.half.before_step(orders)
        for name in self.layers:
            self.half.layer_done(orders, name)
        self.half.step_done(orders)
        return self.half.ended()

    def close(self) -> None:
        self.half.close()
        self.link.close()


@pytest.fixture(params=[True, False], ids=["by layer", "by step"])
def workers(request: pytest.FixtureRequest) -> Iterator[tuple[_Worker, _Worker]]:
    made = _Worker(1.5, by_layer=request.param), _Worker(0.0, by_layer=request.param)
    yield made
    for one in made:
        one.close()


def _orders(to: _Worker, computed: list[tuple[int, int]], *, last: bool) -> StepOrders:
    where = target(to.port, 3)
    return StepOrders([StepSend("r", where, [(0, 0), *computed], last)])


def test_what_steps_compute_arrives_and_the_blocks_are_let_go(
    workers: tuple[_Worker, _Worker],
) -> None:
    sender, receiver = workers
    receiver.link.send(order([5, 1, 2]))
    assert sender.step(_orders(receiver, [(1, 1)], last=False)) == set()
    where = target(receiver.port, 3)
    sender.step(StepOrders([StepSend("r", where, [(2, 2)], last=True)]))
    assert receiver.heard.next("finished")["finished"] == "lease"
    assert sender.heard.next("sent")["error"] == ""
    assert sender.step(StepOrders(ended=["r"])) == {"r"}
    assert sender.step(StepOrders()) == set()
    receiver.link.send({"close": "lease", "nonce": NONCE.hex()})
    assert receiver.heard.next("stopped")["blocks"] == 3
    for name in _NAMES:
        assert torch.equal(receiver.layers[name][[5, 1, 2]], sender.layers[name][[0, 1, 2]])
        assert not receiver.layers[name][[0, 3, 4]].any()


def test_what_is_not_wanted_any_more_is_let_go(workers: tuple[_Worker, _Worker]) -> None:
    sender, receiver = workers
    receiver.link.send(order([5, 1, 2]))
    sender.step(_orders(receiver, [(1, 1)], last=False))
    sender.half.before_step(StepOrders(ended=["r"], dropped=["r"]))
    assert sender.heard.next("sent")["error"] == "transfer"
    ended: set[str] = set()
    while not ended:
        ended = sender.step(StepOrders())
    assert ended == {"r"}


def test_requests_of_which_nothing_was_sent_are_let_go_at_once(
    workers: tuple[_Worker, _Worker],
) -> None:
    assert workers[0].step(StepOrders(ended=["unknown"])) == {"unknown"}


def test_a_step_is_begun_once(workers: tuple[_Worker, _Worker]) -> None:
    sender, receiver = workers
    receiver.link.send(order([5, 1, 2]))
    orders = _orders(receiver, [(1, 1), (2, 2)], last=True)
    sender.half.before_step(orders)
    sender.step(orders)
    assert sender.heard.next("sent")["bytes"] == 2 * 3 * 64


def test_nothing_is_sent_before_its_step_is_computed(workers: tuple[_Worker, _Worker]) -> None:
    """Another request of the same step may compute a block that this one has found."""
    sender, receiver = workers
    receiver.link.send(order([5, 1, 2]))
    orders = _orders(receiver, [(1, 1), (2, 2)], last=True)
    sender.half.before_step(orders)
    for layer in sender.layers.values():
        layer[0] += 1
    sender.step(orders)
    assert receiver.heard.next("finished")["finished"] == "lease"
    for name in _NAMES:
        assert torch.equal(receiver.layers[name][5], sender.layers[name][0])


def test_only_who_knows_the_secret_gives_a_worker_orders(
    workers: tuple[_Worker, _Worker],
) -> None:
    one = control.Worker(workers[0].heard)
    stranger = control.connected(one.name, "guessed")
    assert stranger.receive() is None
    friend = control.connected(one.name, one.secret)
    friend.send({"hello": 1})
    assert workers[0].heard.next("hello") == {"hello": 1}
    one.close()
    assert friend.receive() is None
    for link in (stranger, friend):
        link.close()
