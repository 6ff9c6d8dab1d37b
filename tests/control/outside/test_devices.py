"""The accelerators of a machine, told by an NVML that has two."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.control.node_agent.devices import DeviceFacts, NoDevices
from penstock.control.outside.devices import Nvml
from tests.fakes.nvml import nvml_in

GIB = 1 << 30


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(nvml_in(tmp_path_factory.mktemp("nvml")))


def test_every_device_is_told_with_its_memory(library: str) -> None:
    assert Nvml(library).devices() == [
        DeviceFacts(0, "GPU-0", "NVIDIA H200", 150 * GIB, 1 * GIB),
        DeviceFacts(1, "GPU-1", "NVIDIA H200", 150 * GIB, 2 * GIB),
    ]


def test_memory_of_processes_is_added_over_devices(library: str) -> None:
    assert Nvml(library).memory_of_processes() == {os.getpid(): 3 * GIB, os.getppid(): 0}


def test_one_that_is_lost_is_not_told_with_the_others(
    library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = tmp_path / "lost"
    monkeypatch.setenv("FAKE_NVML_LOST", str(lost))
    nvml = Nvml(library)
    assert len(nvml.devices()) == 2
    lost.touch()
    assert [device.uuid for device in nvml.devices()] == ["GPU-0"]


def test_a_driver_that_does_not_answer_is_told_with_its_status(
    library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_NVML_BROKEN", "1")
    with pytest.raises(NoDevices, match="nvmlInit_v2 says 999"):
        Nvml(library)


def test_a_machine_without_nvml_has_no_devices() -> None:
    with pytest.raises(NoDevices, match="libno-such-library"):
        Nvml("libno-such-library.so.1")


def test_a_library_without_the_functions_is_no_nvml() -> None:
    with pytest.raises(NoDevices, match="too old"):
        Nvml("libc.so.6")
