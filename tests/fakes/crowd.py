"""Clients that connect and stay: a process of their own, which has its own limits.

    python -m tests.fakes.crowd PORT COUNT [asks]

They say nothing, or ask once whether the gateway lives and never read the answer. It opens as many
connections as its limit on descriptors allows, prints their number, and ends with its input. They
end with a reset then, so that no port is kept waiting.
"""

from __future__ import annotations

import resource
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

OWN_DESCRIPTORS = 50
RESET = struct.pack("ii", 1, 0)


ONCE = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"


@contextmanager
def crowds(port: int, counts: list[int], *words: str) -> Iterator[None]:
    """So many clients, in a process for each count, all connected when this begins."""
    command = [sys.executable, "-m", "tests.fakes.crowd", str(port)]
    with ExitStack() as stack:
        started = [stack.enter_context(_running([*command, str(n), *words])) for n in counts]
        for each in started:
            assert each.stdout
            assert each.stdout.readline(), "a crowd did not get through"
        yield


@contextmanager
def _running(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def main() -> None:
    """Connects and waits."""
    port, count, first = int(sys.argv[1]), int(sys.argv[2]), ONCE if sys.argv[3:] else b""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    held = [_connection(port, first) for _ in range(min(count, most - OWN_DESCRIPTORS))]
    sys.stdout.write(f"{len(held)}\n")
    sys.stdout.flush()
    sys.stdin.read()


def _connection(port: int, first: bytes) -> socket.socket:
    link = socket.create_connection(("127.0.0.1", port), timeout=20)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    link.sendall(first)
    return link


if __name__ == "__main__":
    main()
