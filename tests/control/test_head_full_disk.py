"""A head whose disk is full: told as what it is, nothing stays of what did not fit, it goes on."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from penstock.adapters.version import WEIGHTS_FILE
from tests.control.adapter_sources.files import FILES, weights
from tests.control.head_process import START, HeadProcess, running_head
from tests.control.head_uploads import coming_in, registered, sent, stored, upload

pytestmark = pytest.mark.processes

MIB = 1 << 20
DISK = 8 * MIB
APART = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
MOUNT = f'mount -t tmpfs -o size={DISK} none "$0"'


class HeadOnSmallDisk(HeadProcess):
    """Its data directory is a disk of `DISK` bytes, which is there for this process alone."""

    def spawn(self, *flags: str) -> subprocess.Popen[str]:
        place = self.data_dir
        head = [sys.executable, "-c", START, str(place), self.admin, self.rpc, *flags]
        with (place.parent / "head.log").open("a") as log:
            argv = [*APART, f'{MOUNT} && exec "$@"', str(place), *head]
            process = subprocess.Popen(argv, stderr=log, text=True)
        self.data_dir = Path(f"/proc/{process.pid}/root{place}")
        return process


@pytest.fixture
async def head(tmp_path: Path) -> AsyncIterator[HeadProcess]:
    place = tmp_path / "data"
    place.mkdir()
    tried = subprocess.run([*APART, MOUNT, str(place)], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"no disk of its own can be mounted here: {tried.stderr.strip()}")
    async with running_head(place, HeadOnSmallDisk) as head:
        await head.put("mini", max_adapters=2)
        yield head


def assert_told(reply: httpx.Response) -> None:
    """A 503 by which an operator knows what to do."""
    assert reply.status_code == 503, reply.text
    assert os.strerror(errno.ENOSPC) in reply.json()["detail"]
    assert "check its disk's space" in reply.json()["detail"]


@pytest.mark.parametrize(
    "size", [2 * DISK, 5 * MIB], ids=["larger than the disk", "no room for its copy"]
)
async def test_an_upload_that_does_not_fit_is_told_so_and_leaves_nothing(
    head: HeadProcess, size: int
) -> None:
    large = weights(width=size // 64)
    assert len(large) >= size
    assert_told(await sent(head, upload("large", {**FILES, WEIGHTS_FILE: large})))
    assert (coming_in(head), stored(head), await registered(head)) == ([], set(), set())
    await head.put("another")
    assert (await sent(head, upload("small"))).status_code == 201
    assert await registered(head) == {"small@1"}


def fill(path: Path) -> None:
    """Writes until nothing fits any more."""
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(4096)):
            pass


async def test_a_disk_that_others_filled_stops_no_reader_and_takes_all_once_there_is_room(
    head: HeadProcess,
) -> None:
    assert (await sent(head, upload("before"))).status_code == 201
    filler = head.data_dir / "filler"
    fill(filler)
    assert_told(await sent(head, upload("meanwhile")))
    assert await registered(head) == {"before@1"}
    assert coming_in(head) == []
    filler.unlink()
    assert (await sent(head, upload("meanwhile"))).status_code == 201
    assert await registered(head) == {"before@1", "meanwhile@1"}
