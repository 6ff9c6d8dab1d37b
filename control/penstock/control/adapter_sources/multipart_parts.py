"""The parts of an upload, as its bytes come: each to its place, none larger than it may be."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from penstock.adapters.shown import shown
from penstock.adapters.version import CONFIG_FILE, CONTENT_FILES, WEIGHTS_FILE
from penstock.control.adapter_sources.scratch import LARGEST_CONFIG, ReceivedFile
from penstock.control.adapter_sources.tar_files import OTHER_BYTES
from penstock.control.errors import BadAdapter

MANIFEST: Final = "manifest"
ARCHIVE: Final = "archive"
LARGEST_MANIFEST: Final = 64 << 10
_PARTS: Final = f"{MANIFEST}, then {' and '.join(CONTENT_FILES)}, or {MANIFEST}, then {ARCHIVE}"
_BETWEEN_PARTS: Final = 64 << 10  # boundaries, headers, what stands before and behind


def boundary_of(content_type: str) -> bytes:
    """What separates the parts of a body of this type. Raises `BadAdapter`."""
    try:
        kind, options = parse_options_header(content_type)
    except ValueError:
        kind, options = b"", {}
    boundary = options.get(b"boundary", b"")
    if kind != b"multipart/form-data" or not boundary:
        raise BadAdapter(
            f"an upload's Content-Type is multipart/form-data with a boundary, not "
            f"{shown(content_type)}"
        )
    return boundary


class UploadParts:
    """Parts that come in. Blocks on the disk; `close` when done, whatever happened."""

    def __init__(self, directory: Path, boundary: bytes, max_bytes: int) -> None:
        """Files go to the directory, by their names; weights have at most `max_bytes`."""
        self.directory = directory
        self._largest = {
            CONFIG_FILE: LARGEST_CONFIG,
            WEIGHTS_FILE: max_bytes,
            ARCHIVE: max_bytes + LARGEST_CONFIG + OTHER_BYTES,
        }
        self._left = sum(self._largest.values()) + LARGEST_MANIFEST + _BETWEEN_PARTS
        self._field, self._value, self._disposition = bytearray(), bytearray(), b""
        self._part = ""
        self._file: ReceivedFile | None = None  # of the part, unless that is the manifest
        self._ended = False
        self.names: set[str] = set()
        self.manifest = bytearray()
        self.sha256: dict[str, str] = {}
        try:
            self._parser = MultipartParser(
                boundary,
                {
                    "on_part_begin": self._on_part_begin,
                    "on_header_field": self._on_header_field,
                    "on_header_value": self._on_header_value,
                    "on_header_end": self._on_header_end,
                    "on_headers_finished": self._on_headers_finished,
                    "on_part_data": self._on_part_data,
                    "on_part_end": self._on_part_end,
                    "on_end": self._on_end,
                },
            )
        except FormParserError as error:
            raise BadAdapter(f"the upload's boundary is none: {shown(str(error))}") from None

    def feed(self, data: bytes) -> None:
        """The next bytes of the body. Raises `BadAdapter`, `StoreUnavailable`."""
        self._left -= len(data)
        if self._left < 0:
            raise BadAdapter("the upload is larger than any that is taken")
        try:
            self._parser.write(data)
        except FormParserError as error:
            raise BadAdapter(f"the upload is no multipart body: {shown(str(error))}") from None

    def finish(self) -> None:
        """The body has ended. Raises `BadAdapter` where a part is missing, or half of one."""
        if not self._ended:
            raise BadAdapter("the upload is cut off: it ends before its closing boundary")
        if self.names not in ({MANIFEST, ARCHIVE}, {MANIFEST, *CONTENT_FILES}):
            raise BadAdapter(
                f"the upload has the parts {', '.join(sorted(self.names)) or '(none)'}; "
                f"it needs {_PARTS}"
            )

    def close(self) -> None:
        """Nothing comes any more; any number of times."""
        if self._file is not None:
            self._file.close()

    def _on_part_begin(self) -> None:
        self._disposition = b""

    def _on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._field += data[start:end]

    def _on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _on_header_end(self) -> None:
        if self._field.lower() == b"content-disposition":
            self._disposition = bytes(self._value)
        self._field.clear()
        self._value.clear()

    def _on_headers_finished(self) -> None:
        _, options = parse_options_header(self._disposition.decode("latin-1"))
        name = options.get(b"name", b"").decode("utf-8", "replace")
        if name != MANIFEST and name not in self._largest:
            raise BadAdapter(f"the upload has a part named {shown(name)}; it needs {_PARTS}")
        if name in self.names:
            raise BadAdapter(f"the upload has two parts named {name}")
        self.names.add(name)
        self._part, self._file = name, None
        if name != MANIFEST:
            path = self.directory / name
            self._file = ReceivedFile(path, self._largest[name], f"the upload's {name}")

    def _on_part_data(self, data: bytes, start: int, end: int) -> None:
        if self._file is not None:
            self._file.write(data[start:end])
            return
        self.manifest += data[start:end]
        if len(self.manifest) > LARGEST_MANIFEST:
            raise BadAdapter(f"the upload's manifest has more than {LARGEST_MANIFEST} bytes")

    def _on_part_end(self) -> None:
        if self._file is not None:
            self.sha256[self._part] = self._file.sha256
        self.close()

    def _on_end(self) -> None:
        self._ended = True
