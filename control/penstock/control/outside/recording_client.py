"""Recordings in the admin REST API, as a client sees them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from penstock.control.admin.recording.models import RecordingModel
from penstock.control.outside.admin_transport import AdminTransport, quote


class RecordingClient(AdminTransport):
    """The calls about recordings."""

    async def recordings(self) -> list[RecordingModel]:
        """Every recording."""
        return await self.pages_of("recordings", RecordingModel, lambda it: it.name)

    async def recording(self, name: str) -> RecordingModel:
        """One recording."""
        return await self.get(RecordingModel, _path(name))

    async def start_recording(self, asked: Mapping[str, Any], *, dry_run: bool) -> RecordingModel:
        """Begins to record."""
        params = {"dry_run": dry_run}
        return await self.post(RecordingModel, "/recordings", json=dict(asked), params=params)

    async def stop_recording(self, name: str) -> RecordingModel:
        """Records nothing more."""
        return await self.post(RecordingModel, f"{_path(name)}/stop")

    def recording_file(self, name: str) -> AsyncIterator[bytes]:
        """What was recorded."""
        return self.download(f"{_path(name)}/file")

    async def delete_recording(self, name: str) -> None:
        """Ends it, and forgets what it recorded."""
        await self.call("DELETE", _path(name))


def _path(name: str) -> str:
    return f"/recordings/{quote(name)}"
