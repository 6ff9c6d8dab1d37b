"""An adapter's two files out of a tar, plain or gzip, whose author is not trusted.

Python's tarfile is for archives of friends: it reads headers of any length into memory, follows
chains of them by recursion, and seeks where they say. This reads forwards, once, and knows the few
kinds of members that such an archive has. No name of an archive is ever a path of ours.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from penstock.adapters.shown import shown
from penstock.adapters.version import CONTENT_FILES
from penstock.control.adapter_sources.scratch import ReceivedFile
from penstock.control.errors import BadAdapter

OTHER_BYTES: Final = 64 << 20
"""What an archive may hold beside the two files: a model card, a tokenizer, padding."""
_BLOCK: Final = 512
_PIECE: Final = 1 << 20
_LONGEST_HEADER: Final = 64 << 10
_MOST_MEMBERS: Final = 10_000
_FILES: Final = (b"0", b"\0", b"7")
_DIRECTORY: Final = b"5"
_PAX, _PAX_OF_ALL, _LONG_NAME, _LONG_LINK = b"x", b"g", b"L", b"K"
_EXTENSIONS: Final = (_PAX, _PAX_OF_ALL, _LONG_NAME, _LONG_LINK)
_GZIP: Final = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class _Member:
    """What a header says."""

    name: str
    kind: bytes
    size: int


def unpack(archive: Path, directory: Path, largest: Mapping[str, int]) -> dict[str, str]:
    """Writes the two files, none larger than `largest` says, and tells their SHA-256 by name.

    They may lie below one directory; other files are passed over. Raises `BadAdapter` for whatever
    else there is, `StoreUnavailable`.
    """
    found: dict[str, str] = {}
    with _opened(archive, sum(largest.values()) + OTHER_BYTES) as stream:
        for member in _members(stream):
            name = _wanted(member)
            if name in found:
                raise BadAdapter(f"the archive has more than one {name}: pack one adapter")
            if name is None:
                stream.skip(member.size)
            else:
                with ReceivedFile(directory / name, largest[name], f"the archive's {name}") as file:
                    file.will_have(member.size)
                    for piece in stream.pieces(member.size):
                        file.write(piece)
                    found[name] = file.sha256
            stream.skip(-member.size % _BLOCK)
    return found


class _Stream:
    """The archive's bytes, forwards, and no more than a number of them."""

    def __init__(self, file: BinaryIO, most: int) -> None:
        self._file, self._most, self._left = file, most, most

    def some(self, size: int) -> bytes:
        """At most so many; none at the end."""
        data = self._file.read(min(size, self._left + 1))
        self._left -= len(data)
        if self._left < 0:
            raise BadAdapter(
                f"the archive unpacks to more than {self._most} bytes, which is all that is taken"
            )
        return data

    def exactly(self, size: int) -> bytes:
        """So many, which are few."""
        return b"".join(self.pieces(size))

    def pieces(self, size: int) -> Iterator[bytes]:
        """So many, as they come."""
        while size:
            piece = self.some(min(size, _PIECE))
            if not piece:
                raise BadAdapter("the archive is cut off: it ends before what it says it holds")
            size -= len(piece)
            yield piece

    def skip(self, size: int) -> None:
        """Passes over a member of so many bytes, or over padding."""
        for _ in self.pieces(size):
            pass


@contextmanager
def _opened(archive: Path, most: int) -> Iterator[_Stream]:
    """The archive's bytes, unpacked; read to their end, where gzip checks them."""
    try:
        with archive.open("rb") as file:
            packed = file.read(len(_GZIP)) == _GZIP
            file.seek(0)
            with gzip.open(file) if packed else file as plain:
                stream = _Stream(plain, most)  # type: ignore[arg-type]  # gzip's is a binary file
                yield stream
                while stream.some(_PIECE):
                    pass
    except (gzip.BadGzipFile, zlib.error) as error:
        raise BadAdapter(f"the archive is broken gzip: {shown(str(error))}") from None
    except EOFError:
        raise BadAdapter("the archive is cut off: its gzip has no end") from None


def _members(stream: _Stream) -> Iterator[_Member]:
    """Each file, directory or stranger; whoever asks reads its bytes before the next."""
    name, size = None, None
    for _ in range(_MOST_MEMBERS):
        block = stream.some(_BLOCK)
        block += stream.exactly(_BLOCK - len(block)) if block else b""
        if not block.strip(b"\0"):
            return
        member = _parse(block)
        if member.kind in _EXTENSIONS:
            said = _extension(stream, member)
            name, size = said.get("path", name), said.get("size", size)
            continue
        length = 0 if member.kind == _DIRECTORY else _number(size, member.size)
        yield _Member(name or member.name, member.kind, length)
        name, size = None, None
    raise BadAdapter(f"the archive has more than {_MOST_MEMBERS} members: pack one adapter")


def _extension(stream: _Stream, header: _Member) -> dict[str, str]:
    """What a header that goes before a member's own says of it: `path`, `size`."""
    if header.size > _LONGEST_HEADER:
        raise BadAdapter(f"the archive has a header of {header.size} bytes, as no adapter needs")
    data = stream.exactly(header.size)
    stream.skip(-header.size % _BLOCK)
    if header.kind == _LONG_NAME:
        return {"path": _text(data)}
    return _pax_records(data) if header.kind == _PAX else {}


def _pax_records(data: bytes) -> dict[str, str]:
    """Records `<length> <key>=<value>\\n`, the length being that of the whole record."""
    said: dict[str, str] = {}
    at, end = 0, len(data)
    while at < end:
        length = data[at : at + 7].partition(b" ")[0]
        if not length.isdigit() or not len(length) < int(length) <= end - at:
            raise BadAdapter("the archive has a pax header that is none")
        record = data[at + len(length) + 1 : at + int(length)]
        at += int(length)
        key, _, value = record.removesuffix(b"\n").partition(b"=")
        if key.startswith(b"GNU.sparse"):
            raise BadAdapter("the archive has a sparse file: pack it without (tar without -S)")
        said[_text(key)] = _text(value)
    return said


def _parse(block: bytes) -> _Member:
    """A member's own header."""
    unsigned = sum(block) - sum(block[148:156]) + 8 * ord(" ")
    if _octal(block[148:156]) != unsigned:
        raise BadAdapter(
            "the archive is no tar, neither plain nor gzip, or it is damaged: "
            "a header's checksum is wrong"
        )
    name = _text(block[:100])
    if block[257:263] == b"ustar\0" and (prefix := _text(block[345:500])):
        name = f"{prefix}/{name}"
    return _Member(name, block[156:157], _size(block[124:136]))


def _wanted(member: _Member) -> str | None:
    """Which of the two files a member is; none: another file, or a directory."""
    parts = [part for part in member.name.split("/") if part not in ("", ".")]
    if member.name.startswith("/") or ".." in parts or not member.name:
        raise BadAdapter(f"the archive has a member {shown(member.name)}, which leads out of it")
    if member.kind not in (*_FILES, _DIRECTORY):
        raise BadAdapter(
            f"the archive's {shown(member.name)} is no file but a link or a device: pack the files"
            " themselves (tar with -h)"
        )
    # A slash at the end: a directory, as tars had it before there was a kind for those.
    is_file = member.kind != _DIRECTORY and not member.name.endswith("/")
    return parts[-1] if is_file and len(parts) <= 2 and parts[-1] in CONTENT_FILES else None


def _text(field: bytes) -> str:
    return field.partition(b"\0")[0].decode("utf-8", "surrogateescape")


def _octal(field: bytes) -> int:
    digits = field.strip(b" \0")
    return int(digits, 8) if digits.isdigit() and not set(digits) & {ord("8"), ord("9")} else -1


def _size(field: bytes) -> int:
    """A size as tars write it: octal, or binary for what is large."""
    size = int.from_bytes(field[1:], "big") if field[0] == 0x80 else _octal(field)
    return _number(None, size)


def _number(said: str | None, size: int) -> int:
    """The size that counts. Raises `BadAdapter` for what is none."""
    if said is not None:
        size = int(said) if said.isascii() and said.isdigit() and len(said) < 20 else -1
    if size < 0:
        raise BadAdapter("the archive is damaged: a member has no size")
    return size
