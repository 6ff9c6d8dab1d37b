"""The accelerators of this machine, as NVML tells of them: loaded by name, no package needed.

NVML comes with NVIDIA's driver. A machine without it has no accelerators; one whose driver does not
answer has none that could be used, and says so once.
"""

from __future__ import annotations

import ctypes
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from penstock.control.node_agent.devices import DeviceFacts, NoDevices

log = logging.getLogger(__name__)

LIBRARY = "libnvidia-ml.so.1"
TEXT_BYTES = 96
MOST_PROCESSES = 256  # of one accelerator
GPU_IS_LOST = 15  # nvmlReturn_t: it fell off the bus, or the driver cannot reach it otherwise


class _Memory(ctypes.Structure):
    """nvmlMemory_t, in bytes."""

    _fields_ = (
        ("total", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    )


class _Process(ctypes.Structure):
    """nvmlProcessInfo_t of the functions that end in _v3."""

    _fields_ = (
        ("pid", ctypes.c_uint),
        ("used", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


class _Lost(NoDevices):
    """One accelerator cannot be reached; the others can."""


class Nvml:
    """A `DeviceLibrary` over NVML's C functions. Raises `NoDevices` where it cannot be used."""

    def __init__(self, library: str = LIBRARY) -> None:
        try:
            self._nvml = ctypes.CDLL(library)
        except OSError as error:
            raise NoDevices(f"{library} cannot be loaded: {error}") from error
        self._call("nvmlInit_v2")

    def devices(self) -> Sequence[DeviceFacts]:
        """Every accelerator but those that are lost, with its memory of this moment. Raises
        `NoDevices`."""
        count = ctypes.c_uint()
        self._call("nvmlDeviceGetCount_v2", ctypes.byref(count))
        found = []
        for index in range(count.value):
            with suppress(_Lost):
                found.append(self._device(index))
        return found

    def memory_of_processes(self) -> Mapping[int, int]:
        """Bytes of all accelerators by the pids that the driver knows; in a container it may know
        others. Raises `NoDevices`."""
        count, found = ctypes.c_uint(), Counter[int]()
        self._call("nvmlDeviceGetCount_v2", ctypes.byref(count))
        for index in range(count.value):
            with suppress(_Lost):
                for process in self._processes(self._handle(index)):
                    # All bits set: the driver does not tell.
                    found[process.pid] += process.used if process.used >> 63 == 0 else 0
        return found

    def _processes(self, handle: ctypes.c_void_p) -> Sequence[_Process]:
        count, found = ctypes.c_uint(MOST_PROCESSES), (_Process * MOST_PROCESSES)()
        function = "nvmlDeviceGetComputeRunningProcesses_v3"
        self._call(function, handle, ctypes.byref(count), ctypes.byref(found))
        return found[: count.value]

    def _handle(self, index: int) -> ctypes.c_void_p:
        handle = ctypes.c_void_p()
        self._call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(handle))
        return handle

    def _device(self, index: int) -> DeviceFacts:
        handle = self._handle(index)
        memory = _Memory()
        self._call("nvmlDeviceGetMemoryInfo", handle, ctypes.byref(memory))
        return DeviceFacts(
            index=index,
            uuid=self._text("nvmlDeviceGetUUID", handle),
            name=self._text("nvmlDeviceGetName", handle),
            memory_bytes=memory.total,
            memory_used_bytes=memory.used,
        )

    def _text(self, function: str, handle: ctypes.c_void_p) -> str:
        text = ctypes.create_string_buffer(TEXT_BYTES)
        self._call(function, handle, text, ctypes.c_uint(TEXT_BYTES))
        return text.value.decode("utf-8", "replace")

    def _call(self, function: str, *arguments: Any) -> None:
        try:
            status = int(getattr(self._nvml, function)(*arguments))
        except AttributeError as error:
            raise NoDevices(f"this driver's NVML has no {function}: it is too old") from error
        if status != 0:
            kind = _Lost if status == GPU_IS_LOST else NoDevices
            raise kind(f"{function} says {status}: `nvidia-smi` may tell more")


def open_devices() -> Nvml | None:
    """NVML, or None on a machine that has none."""
    try:
        return Nvml()
    except NoDevices as error:
        log.info("no accelerators: %s", error)
        return None
