"""Server-sent events out of bytes as they come, each byte looked at once. Pure."""

from __future__ import annotations

from typing import Final

_MOST_BYTES: Final = 4 << 20
_MARK: Final = b"\xef\xbb\xbf"
"""Of the byte order, which a stream may begin with and which means nothing."""


class BadEvents(ValueError):
    """What came is no stream of server-sent events, or one event is too large."""


class Events:
    """Takes bytes in any portions, gives (name, data) of each whole event that has data."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []  # of an event whose end has not come
        self._parts: list[bytes] = []  # of a line whose end has not come
        self._size = 0  # of both
        self._began = False  # its first line has come
        self._returned = False  # the last byte was a return, and a line feed may belong to it

    def feed(self, portion: bytes) -> list[tuple[str, str]]:
        """The events that these bytes complete. Raises `BadEvents`."""
        if not portion:
            return []
        text = portion.removeprefix(b"\n") if self._returned else portion
        self._returned = portion.endswith(b"\r")
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *ends, rest = text.split(b"\n")
        events = []
        for end in ends:
            line = self._line(end)
            if line:
                self._lines.append(line)
            elif (event := self._event()) is not None:
                events.append(event)
        self._grow(rest)
        return events

    def rest(self) -> tuple[str, str] | None:
        """What looks like one more event whose last blank line did not come."""
        self._lines.append(self._line(b""))
        return self._event()

    def _line(self, end: bytes) -> bytes:
        self._grow(end)
        line = b"".join(self._parts)
        self._parts.clear()
        if not self._began:
            self._began, line = True, line.removeprefix(_MARK)
        return line

    def _grow(self, part: bytes) -> None:
        self._size += len(part) + 1
        if self._size > _MOST_BYTES:
            raise BadEvents(f"an event has more than {_MOST_BYTES} bytes")
        self._parts.append(part)

    def _event(self) -> tuple[str, str] | None:
        lines, self._lines = self._lines, []
        self._size = 0
        return _event(lines)


def _event(lines: list[bytes]) -> tuple[str, str] | None:
    name, data = "", []
    for line in lines:
        try:
            text = line.decode()
        except UnicodeDecodeError:
            raise BadEvents("an event is no UTF-8") from None
        if text.startswith("data:"):
            data.append(text[6:] if text.startswith("data: ") else text[5:])
        elif text.startswith("event:"):
            name = text[6:].strip()
    return (name, "\n".join(data)) if data else None
