"""What heartbeats tell of a node's accelerators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from penstock.control.node_agent.devices import DeviceFacts, NodeResourcesReader, NoDevices
from penstock.v1 import nodes_pb2

H200 = DeviceFacts(0, "GPU-0", "NVIDIA H200", memory_bytes=100, memory_used_bytes=10)


class Library:
    """Two accelerators, until the driver stutters."""

    def __init__(self) -> None:
        self.found = [H200, replace(H200, index=1, uuid="GPU-1")]
        self.stutters = False

    def devices(self) -> Sequence[DeviceFacts]:
        if self.stutters:
            raise NoDevices("nvmlDeviceGetCount_v2 says 999")
        return self.found


def machine() -> nodes_pb2.NodeResources:
    return nodes_pb2.NodeResources(cpus=4, gpus=1)


def test_devices_are_told_with_the_memory_of_this_moment() -> None:
    library = Library()
    reader = NodeResourcesReader(machine, library)
    first = reader.read()
    library.found = [replace(each, memory_used_bytes=60) for each in library.found]
    second = reader.read()
    assert [(each.uuid, each.memory_used_bytes) for each in first.devices] == [
        ("GPU-0", 10),
        ("GPU-1", 10),
    ]
    assert [each.memory_used_bytes for each in second.devices] == [60, 60]
    assert (first.cpus, first.gpus) == (4, 2)


def test_a_driver_that_stutters_takes_nobody_its_devices() -> None:
    library = Library()
    reader = NodeResourcesReader(machine, library)
    before = reader.read()
    library.stutters = True
    assert reader.read() == before


def test_one_that_is_no_longer_there_is_told_as_lost_until_it_is_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    library = Library()
    reader = NodeResourcesReader(machine, library)
    reader.read()
    both = library.found
    library.found = both[1:]
    for _ in range(2):
        told = reader.read()
        assert [(each.uuid, each.lost) for each in told.devices] == [
            ("GPU-0", True),
            ("GPU-1", False),
        ]
    assert caplog.messages == ["accelerator 0 is lost: NVIDIA H200 GPU-0"]
    library.found = both
    assert not any(each.lost for each in reader.read().devices)


def test_a_machine_without_a_library_tells_what_it_is_otherwise_known_to_have() -> None:
    told = NodeResourcesReader(machine, None).read()
    assert (told.gpus, len(told.devices)) == (1, 0)
