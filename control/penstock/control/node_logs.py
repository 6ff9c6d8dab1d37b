"""Composition of a node's logs: where its agent writes, and who reads what all processes wrote."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from penstock.control.data_dir import head_pid_path, logs_path
from penstock.control.machine_logs.reader import LocalLogs
from penstock.control.machine_logs.sources import NODE_LOG, LogFolder, node_sources
from penstock.control.node_agent.log_readers import LogReaders
from penstock.control.outside.clock import SystemClock
from penstock.control.settings import NodeSettings


def log_file(settings: NodeSettings) -> Path:
    """The agent's own log."""
    return LogFolder(logs_path(settings.data_dir)).path(NODE_LOG)


def log_readers(
    settings: NodeSettings, path_of: Callable[[str], Path], is_here: Callable[[str], bool]
) -> LogReaders:
    """`path_of`: where a replica logs; `is_here`: whether the agent has it."""
    folder, beside = LogFolder(logs_path(settings.data_dir)), head_pid_path(settings.data_dir)
    machine = LocalLogs(
        lambda: node_sources(folder, settings.node_id, is_here, beside_head=beside.exists()),
        SystemClock(),
    )
    return LogReaders(path_of, is_here, machine, SystemClock())
