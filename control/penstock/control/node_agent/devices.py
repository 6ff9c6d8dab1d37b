"""The accelerators of a node as its agent tells the head of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from penstock.control.declared.messages import message_of
from penstock.control.errors import Unavailable
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


class DeviceLibrary(Protocol):
    """Knows the accelerators of a machine."""

    def devices(self) -> Sequence[DeviceFacts]:
        """Every one of them. Raises `NoDevices`."""


class NodeResourcesReader:
    """Reads what the machine has, for each heartbeat: its own facts, and its accelerators'."""

    def __init__(
        self, machine: Callable[[], nodes_pb2.NodeResources], library: DeviceLibrary | None
    ) -> None:
        self._machine = machine
        self._library = library
        self._last: Sequence[DeviceFacts] = ()
        self._told = ""

    def read(self) -> nodes_pb2.NodeResources:
        """What there is now. Devices that cannot be asked are told as they were last seen: a
        driver that stutters takes no replica its devices."""
        resources = self._machine()
        resources.devices.extend(message_of(nodes_pb2.Device, each) for each in self._devices())
        if resources.devices:
            resources.gpus = len(resources.devices)
        return resources

    def _devices(self) -> Sequence[DeviceFacts]:
        if self._library is None:
            return ()
        try:
            self._last = self._library.devices()
        except NoDevices as error:
            if str(error) != self._told:  # once for each reason
                self._told = str(error)
                log.error("the accelerators cannot be asked: %s", error)
        return self._last
