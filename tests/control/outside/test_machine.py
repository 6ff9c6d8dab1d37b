"""This machine: its resources."""

from __future__ import annotations

import os

import psutil

from penstock.control.outside.machine import available_memory, read_resources


def test_resources_are_those_of_this_machine() -> None:
    resources = read_resources()
    assert resources.memory_bytes == psutil.virtual_memory().total
    assert 0 < resources.memory_available_bytes < resources.memory_bytes
    assert resources.cpus == os.cpu_count()


def test_available_memory_is_a_part_of_the_machines() -> None:
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < available_memory() <= pages
