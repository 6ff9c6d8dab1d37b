"""A recording on disk: looked through once, then given request by request in order of arrival."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from penstock.evals.comparison.recording import BadRecording, Header, Reader, Recorded, request_at
from penstock.evals.errors import EvalError


class Recording:
    """An open recording. All of its lines are right; its bodies stay on disk."""

    def __init__(self, path: Path, limit: int | None = None) -> None:
        """Opens it, for the first `limit` requests to arrive. Raises `EvalError`."""
        try:
            self._stream: BinaryIO = path.open("rb")
        except OSError as error:
            raise EvalError(f"{path} cannot be read: {error.strerror}") from error
        try:
            self.header, self._places = _looked_through(self._stream)
        except OSError as error:
            raise EvalError(f"{path} cannot be read: {error.strerror}") from error
        except EvalError as error:
            self._stream.close()
            raise BadRecording(f"{path}: {error}") from error
        if limit is not None:
            del self._places[limit:]

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes the file."""
        self._stream.close()

    def __len__(self) -> int:
        """How many requests there are."""
        return len(self._places)

    def requests(self) -> Iterator[Recorded]:
        """Each request, the first to arrive first."""
        for _, offset in self._places:
            yield request_at(self._stream, offset)


def _looked_through(stream: BinaryIO) -> tuple[Header, list[tuple[float, int]]]:
    reader = Reader(stream)
    places = sorted((request.at, offset) for offset, request in reader.requests())
    if not places:
        raise EvalError("the recording holds no request")
    return reader.header, places
