"""An engine's KV as bytes, where it lies and by way of this machine's memory, and by NIXL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from penstock.replica.vllm.microserving.memory import KvMemory
from penstock.replica.vllm.microserving.receiving import Receiver
from penstock.replica.vllm.microserving.sending import SendJob
from tests.fakes.kv_memory import Told, order, target
from tests.fakes.lazily import torch


@pytest.fixture(autouse=True, scope="module")
def needs_torch() -> None:
    pytest.importorskip("torch")


def _layers(fill: int = 0) -> dict[str, Any]:
    """Two of six blocks."""
    made = torch.arange(2 * 6 * 2 * 8, dtype=torch.float32).reshape(2, 6, 2, 8) + fill
    return {"one": made[0].contiguous(), "two": made[1].contiguous()}


@pytest.mark.parametrize("staged", [False, True], ids=["as it lies", "staged"])
def test_blocks_are_read_and_written_whole(staged: bool) -> None:
    here, there = _layers(1000), _layers()
    source, sink = KvMemory(here, 6), KvMemory(there, 6)
    if staged:  # as on a device
        source._views, sink._views = [], []
    data = b"".join(bytes(part) for part in source.outgoing(1, [4, 5, 0]))
    parts, put = sink.incoming(1, [1, 3, 2])
    at = 0
    for part in parts:
        part[:] = data[at : at + len(part)]
        at += len(part)
    put()
    assert at == len(data) == 3 * source.block_bytes
    assert torch.equal(there["two"][[1, 3, 2]], here["two"][[4, 5, 0]])
    assert torch.equal(there["two"][[0, 4, 5]], _layers()["two"][[0, 4, 5]])
    assert torch.equal(there["one"], _layers()["one"])


def test_layouts_that_are_not_alike_differ() -> None:
    plain = KvMemory(_layers(), 6).layout
    assert KvMemory(_layers(5), 6).layout == plain
    turned = {name: one.reshape(6, 8, 2) for name, one in _layers().items()}
    assert KvMemory(turned, 6).layout != plain
    assert KvMemory({"other": _layers()["one"], "two": _layers()["two"]}, 6).layout != plain


@pytest.mark.parametrize(
    ("layers", "told"),
    [
        (lambda: {"one": _layers()["one"].transpose(0, 1)}, "block by block"),
        (lambda: {"one": _layers()["one"][:, :1]}, "gaps"),
        (lambda: {"one": _layers()["one"], "two": _layers()["one"].double()}, "2 sizes"),
    ],
)
def test_a_layout_whose_blocks_are_not_in_one_piece_is_refused(
    layers: Callable[[], dict[str, Any]], told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        KvMemory(layers(), 6)


def test_blocks_that_are_fetched_by_nixl_are_the_same() -> None:
    pytest.importorskip("nixl")
    from penstock.replica.vllm.microserving.nixl import Exposed

    here, there = _layers(1000), _layers()
    source, sink = KvMemory(here, 6), KvMemory(there, 6)
    told, reports = Told(), Told()
    receiver = Receiver(sink, "127.0.0.1", told, Exposed(sink))
    receiver.open(order([1, 3]))
    job = SendJob(source, target(receiver.port, 2), 0, reports, Exposed(source))
    for layer in range(2):
        job.add(layer, [(4, 0), (5, 1)])
    job.end()
    assert reports.next("sent")["error"] == ""
    told.next("finished")
    receiver.close()
    assert told.next("stopped")["blocks"] == 2
    assert torch.equal(there["one"][[1, 3]], here["one"][[4, 5]])
    assert torch.equal(there["two"][[1, 3]], here["two"][[4, 5]])
