"""JSON objects over a socket that keeps their bounds, with descriptors beside them."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

_LARGEST: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Heard:
    """A message, and the descriptors that came with it, which are the receiver's to close."""

    fields: Mapping[str, Any]
    descriptors: tuple[int, ...] = ()


class Channel:
    """One end of a SOCK_SEQPACKET socket pair."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    @classmethod
    def pair(cls) -> tuple[Channel, Channel]:
        """Two ends of a new one."""
        one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        return cls(one), cls(other)

    def fileno(self) -> int:
        """Its descriptor."""
        return self._end.fileno()

    def tell(self, fields: Mapping[str, Any], descriptors: Sequence[int] = ()) -> None:
        """Raises `OSError` if nobody is at the other end any more."""
        socket.send_fds(self._end, [json.dumps(fields).encode()], descriptors)

    def hear(self) -> Heard | None:
        """The next message, once there is one; None at the end."""
        try:
            content, descriptors, _, _ = socket.recv_fds(
                self._end, _LARGEST, 1, socket.MSG_CMSG_CLOEXEC
            )
        except ConnectionResetError:
            return None
        return Heard(json.loads(content), tuple(descriptors)) if content else None

    def close(self) -> None:
        """Leaves. The other end hears of it once no process holds this one."""
        self._end.close()
