"""Recordings: start, look, stop, fetch, delete."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any, Final, Protocol

from fastapi import APIRouter, Response, status
from fastapi.responses import StreamingResponse

from penstock.control.admin.auth import Operator, Viewer
from penstock.control.admin.parameters import Paged
from penstock.control.admin.recording.models import RecordingModel, RecordingSpecModel
from penstock.control.admin.resources import resources
from penstock.control.admin.taken import after
from penstock.control.admin.writes import Asked, Change, creates, tagged
from penstock.control.managers.recording.recordings import RecordingManager
from penstock.control.state.recording.recorded import RecordingStanding
from penstock.control.state.recording.recordings import Recording
from penstock.control.state.recording.spec import RecordingSpec

JSON_LINES: Final = "application/jsonl"
FILE: Final[dict[int | str, dict[str, Any]]] = {
    status.HTTP_200_OK: {
        "description": "The recording: a header, then a request a line",
        "content": {JSON_LINES: {"schema": {"type": "string"}}},
    }
}

Creates = Annotated[Asked, creates(RecordingSpec)]


class Recorded(Protocol):
    """What was recorded."""

    def recorded(self, uid: str) -> RecordingStanding | None:
        """How a recording stands; None: nobody has said yet."""

    def recording(self, uid: str) -> AsyncIterator[bytes]:
        """A recording as a file. Raises `unknown-recording` and `Unavailable`."""


class RecordingsApi:
    """The handlers of /recordings; their docstrings are the API's documents."""

    def __init__(self, recordings: RecordingManager, recorded: Recorded) -> None:
        self._recordings = recordings
        self._recorded = recorded

    def router(self) -> APIRouter:
        """The handlers on their paths."""
        router = resources("/recordings", tag="recordings")
        router.get("")(self.list_recordings)
        router.post("", status_code=status.HTTP_201_CREATED)(self.start_recording)
        router.get("/{name}")(self.get_recording)
        router.post("/{name}/stop")(self.stop_recording)
        router.get("/{name}/file", response_class=StreamingResponse, responses=FILE)(
            self.read_recording
        )
        router.delete("/{name}", status_code=status.HTTP_204_NO_CONTENT)(self.delete_recording)
        return router

    async def list_recordings(self, _: Viewer, page: Paged) -> list[RecordingModel]:
        """Recordings, by name."""
        return [self._shown(each) for each in page.of(self._recordings.recordings.named)]

    async def start_recording(self, body: RecordingSpecModel, write: Creates) -> RecordingModel:
        """Begins to keep requests of a deployment, with when they came and how they were answered;
        409 where the name is taken. Clients notice nothing of it."""
        made = await self._recordings.start(body.to_spec(), write)
        write.tell(made, f"/admin/v1/recordings/{made.spec.name}")
        return self._shown(made)

    async def get_recording(self, name: str, _: Viewer, response: Response) -> RecordingModel:
        """One recording."""
        tagged(response, recording := self._recordings.recordings.recording(name))
        return self._shown(recording)

    async def stop_recording(self, name: str, write: Change) -> RecordingModel:
        """Records nothing more; what was recorded stays."""
        write.tell(recording := await self._recordings.stop(name, write))
        return self._shown(recording)

    async def read_recording(self, name: str, _: Operator) -> StreamingResponse:
        """What was recorded, as JSON Lines: what `penstock replay` reads."""
        lines = self._recorded.recording(self._recordings.recordings.recording(name).uid)
        first = await anext(lines)  # so that what goes wrong is told as an error
        return StreamingResponse(after(first, lines), media_type=JSON_LINES)

    async def delete_recording(self, name: str, write: Change) -> None:
        """Ends a recording; nothing of what it recorded is kept."""
        await self._recordings.delete(name, write)

    def _shown(self, recording: Recording) -> RecordingModel:
        message = self._recordings.message(recording)
        return RecordingModel.of(recording, message, self._recorded.recorded(recording.uid))
