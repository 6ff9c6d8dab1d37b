"""The accelerators of a node as its agent tells the head of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from penstock.control.declared.messages import message_of
from penstock.control.errors import Unavailable
from penstock.control.state.fleet.memory import ReplicaMemory
from penstock.v1 import nodes_pb2

log = logging.getLogger(__name__)


class NoDevices(Unavailable):
    """The machine's accelerators cannot be asked."""

    kind = "no-devices"


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """One accelerator; memory in bytes."""

    index: int  # which follows the PCI bus
    uuid: str
    name: str
    memory_bytes: int
    memory_used_bytes: int  # now, by whichever process
    lost: bool = False  # it was there: the rest is as it was last seen


class DeviceLibrary(Protocol):
    """Knows the accelerators of a machine."""

    def devices(self) -> Sequence[DeviceFacts]:
        """Every one that can be reached. Raises `NoDevices`."""


class NodeResourcesReader:
    """Reads what the machine has, for each heartbeat: its own facts, and its accelerators'."""

    def __init__(
        self,
        machine: Callable[[], nodes_pb2.NodeResources],
        library: DeviceLibrary | None,
        replicas: Callable[[], Iterable[ReplicaMemory]] = tuple,
    ) -> None:
        self._machine = machine
        self._library = library
        self._replicas = replicas  # as they were measured last
        self._last: Mapping[str, DeviceFacts] = {}  # by uuid
        self._told = ""

    def read(self) -> nodes_pb2.NodeResources:
        """What there is now. Devices that cannot be asked are told as they were last seen: a
        driver that stutters takes no replica its devices. One that was there and is not among the
        others any more is told as lost."""
        resources = self._machine()
        resources.devices.extend(message_of(nodes_pb2.Device, each) for each in self._devices())
        if resources.devices:
            resources.gpus = len(resources.devices)
        resources.replicas.extend(
            message_of(nodes_pb2.ReplicaMemory, each) for each in self._replicas()
        )
        return resources

    def _devices(self) -> Sequence[DeviceFacts]:
        if self._library is None:
            return ()
        try:
            self._last = self._with_lost({each.uuid: each for each in self._library.devices()})
        except NoDevices as error:
            if str(error) != self._told:  # once for each reason
                self._told = str(error)
                log.error("the accelerators cannot be asked: %s", error)
        return sorted(self._last.values(), key=lambda each: each.index)

    def _with_lost(self, found: Mapping[str, DeviceFacts]) -> Mapping[str, DeviceFacts]:
        lost = {u: replace(each, lost=True) for u, each in self._last.items() if u not in found}
        for uuid, each in lost.items():
            if not self._last[uuid].lost:
                log.error("accelerator %d is lost: %s %s", each.index, each.name, uuid)
        return {**lost, **found}
