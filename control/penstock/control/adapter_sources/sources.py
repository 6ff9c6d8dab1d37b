"""What a source names, and its files in a directory for as long as they are looked at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Final

from penstock.adapters.shown import shown
from penstock.control.adapter_sources.directories import (
    adapter_directory,
    listed,
    shipped_adapters,
)
from penstock.control.adapter_sources.hugging_face import HUB_SCHEME, cached_snapshot
from penstock.control.adapter_sources.patience import Patience
from penstock.control.adapter_sources.scratch import scratch_directory
from penstock.control.errors import BadAdapter

_S3_SCHEME: Final = "s3://"


class MachineSources:
    """The sources that the head's machine can read. For any number of threads."""

    def __init__(self, scratch: Path, hub_cache: Path, patience: Patience | None = None) -> None:
        """`scratch`: where downloads lie meanwhile; whoever names it empties it at the start, of
        what a killed process left. `hub_cache`: of Hugging Face's tools."""
        self._scratch = scratch
        self._hub_cache = hub_cache
        self._patience = patience or Patience()
        self._given_up = Event()

    def give_up(self) -> None:
        """Ends downloads at their next piece: the process ends."""
        self._given_up.set()

    @contextmanager
    def fetched(self, source: str, max_bytes: int) -> Iterator[Path]:
        """A directory with `adapter_config.json` and `adapter_model.safetensors`, of at most
        `max_bytes`, for as long as the block lasts. Blocks: a thread's work.

        Raises `BadAdapter` with what is wrong and what would do, `source-unavailable` where another
        try may help, `StoreUnavailable` for the head's own disk.
        """
        if source.startswith(_S3_SCHEME):
            with self._downloaded(source, max_bytes) as directory:
                yield directory
        elif source.startswith(HUB_SCHEME):
            yield cached_snapshot(source, self._hub_cache, max_bytes)
        elif source.startswith("/"):
            yield adapter_directory(Path(source), max_bytes, shown(source))
        else:
            yield adapter_directory(_shipped(source), max_bytes, shown(source))

    @contextmanager
    def _downloaded(self, source: str, max_bytes: int) -> Iterator[Path]:
        # boto3 takes a third of a second and tens of megabytes, which most heads never need.
        from penstock.control.adapter_sources import s3

        place = s3.Place.parse(source)
        with scratch_directory(self._scratch, str(place)) as directory:
            s3.download(place, directory, max_bytes, self._patience, self._given_up.is_set)
            yield directory


def _shipped(name: str) -> Path:
    known = shipped_adapters()
    if name in known:
        return known[name]
    raise BadAdapter(
        f"{shown(name)} is no source: name a directory of the head's machine by its whole path "
        f"(/...), s3://bucket/prefix, hf:org/name[@revision], or what ships with Penstock: "
        f"{listed(list(known))}"
    )
