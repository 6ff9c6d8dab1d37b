"""What can be known to go wrong before anything is started. Each finding says what to do."""

from __future__ import annotations

import errno
import socket
from collections.abc import Collection, Iterator
from contextlib import suppress

import psutil

from penstock.control.errors import AddressTaken, CannotStart, invalid_setting
from penstock.control.serving.options import ServeOptions
from penstock.control.settings import split_address

GIB = 1024**3
# One replica of the smallest model, its KV cache included (docs/measured.md); how much one of this
# model takes, the node's agent adds up.
VLLM_MEMORY = int(1.75 * GIB)


def check_memory(engine: str, replicas: int, available: int) -> None:
    """Raises `CannotStart` where vLLM would be killed for memory; `available` is in bytes."""
    needed = VLLM_MEMORY * max(1, replicas) if engine == "vllm" else 0
    if available < needed:
        raise CannotStart(
            f"too little memory: {replicas} vLLM replica(s) need about {needed / GIB:.0f} GiB,"
            f" {available / GIB:.1f} GiB are available; end other programs, take fewer --replicas,"
            " or try --engine simulated"
        )


def check_ports(options: ServeOptions, ours: Collection[int]) -> None:
    """Raises `AddressTaken` for the first address that somebody else listens at, and
    `invalid-setting` for two on one port.

    `ours` are processes left from an earlier run on the same data: they will be adopted.
    """
    _check_distinct(options)
    for flag, address in options.addresses:
        host, port = split_address(address, flag=flag)
        reason = _cannot_listen(host, port)
        if reason is None:
            continue
        holders = list(_holders(port))
        if any(process.pid in ours for process in holders):
            continue
        who = ", ".join(f"process {process.pid} ({process.name()})" for process in holders)
        raise AddressTaken(
            f"cannot listen on {address}: {reason}"
            + (f", by {who}" if who else "")
            + f"; stop it, or choose another address with {flag}"
        )


def _check_distinct(options: ServeOptions) -> None:
    seen: dict[int, str] = {}
    for flag, address in (*options.addresses, *options.metrics_addresses):
        _, port = split_address(address, flag=flag)
        if port == 0 or port in seen:
            other = f"the port of {seen[port]}" if port else "no port"
            raise invalid_setting(f"{flag} is {address}, {other}: choose a port of its own")
        seen[port] = flag


def _cannot_listen(host: str, port: int) -> str | None:
    """Why nobody can listen there; None if one can."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host.strip("[]"), port))
            probe.listen()
        except OSError as error:
            return "the port is taken" if error.errno == errno.EADDRINUSE else str(error.strerror)
    return None


def _holders(port: int) -> Iterator[psutil.Process]:
    with suppress(psutil.Error):
        for connection in psutil.net_connections("tcp"):
            listens = connection.status == psutil.CONN_LISTEN
            if listens and connection.pid and _port(connection.laddr) == port:
                with suppress(psutil.Error):
                    yield psutil.Process(connection.pid)


def _port(address: object) -> int:
    return int(getattr(address, "port", 0))
