"""Server-sent events out of bytes as they come. Pure."""

from __future__ import annotations

from typing import Final

_MOST_BYTES: Final = 32 << 20


class BadEvents(ValueError):
    """What came is no stream of server-sent events, or one event is too large."""


class Events:
    """Takes bytes in any portions, gives (name, data) of each whole event that has data."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, portion: bytes) -> list[tuple[str, str]]:
        """The events that these bytes complete. Raises `BadEvents`."""
        text = self._rest + portion
        if b"\r" in text:
            text = _with_plain_ends(text)
        *blocks, self._rest = text.split(b"\n\n")
        if len(self._rest) > _MOST_BYTES:
            raise BadEvents(f"an event has more than {_MOST_BYTES} bytes")
        return [event for block in blocks if (event := _event(block)) is not None]

    def rest(self) -> tuple[str, str] | None:
        """What looks like one more event whose last blank line did not come."""
        return _event(self._rest.rstrip(b"\r\n"))


def _with_plain_ends(text: bytes) -> bytes:
    """Lines that end by a line feed alone; a return at the very end may be half of an end."""
    half = b"\r" if text.endswith(b"\r") else b""
    whole = text.removesuffix(b"\r") if half else text
    return whole.replace(b"\r\n", b"\n").replace(b"\r", b"\n") + half


def _event(block: bytes) -> tuple[str, str] | None:
    name, data = "", []
    try:
        lines = block.decode().split("\n")
    except UnicodeDecodeError:
        raise BadEvents("an event is no UTF-8") from None
    for line in lines:
        if line.startswith("data:"):
            data.append(line[6:] if line.startswith("data: ") else line[5:])
        elif line.startswith("event:"):
            name = line[6:].strip()
    return (name, "\n".join(data)) if data else None


__all__ = ["BadEvents", "Events"]
