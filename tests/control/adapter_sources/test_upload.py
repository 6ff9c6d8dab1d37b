"""Uploads come in whole and as their manifest says, or not at all, and leave nothing behind."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import subprocess
import sys
import tracemalloc
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import dedent
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.adapters.fitness import FamilyLimits
from penstock.adapters.version import CONFIG_FILE, CONTENT_FILES, WEIGHTS_FILE
from penstock.control.adapter_sources.upload import received_upload
from penstock.control.errors import BadAdapter, StoreUnavailable
from penstock.control.store.adapters.content import AdapterContents
from tests.control.adapter_sources.files import FILES, LARGE, is_the_adapter
from tests.control.adapter_sources.test_tar_files import adapter, packed

BOUNDARY = "a-boundary"
TYPE = f"multipart/form-data; boundary={BOUNDARY}"
MANIFEST = {"name": "pirate", "version": "1", "base": "mini", "labels": {"team": "sea"}}


def form(parts: Iterable[tuple[str, bytes]]) -> bytes:
    """A body as clients send it."""
    lines = b""
    for name, data in parts:
        head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"; filename="../x"'
        lines += head.encode() + b"\r\nContent-Type: application/octet-stream\r\n\r\n"
        lines += data + b"\r\n"
    return lines + f"--{BOUNDARY}--\r\n".encode()


def parts(**manifest: Any) -> dict[str, bytes]:
    """The parts of an upload that is right."""
    return {"manifest": json.dumps(MANIFEST | manifest).encode(), **FILES}


def archived(archive: bytes, **manifest: Any) -> dict[str, bytes]:
    """The parts of an upload with an archive."""
    return {"manifest": parts(**manifest)["manifest"], "archive": archive}


async def in_pieces(body: bytes, size: int = 1000) -> AsyncIterator[bytes]:
    """The body as it comes from a network."""
    for at in range(0, len(body), size):
        yield body[at : at + size]


async def refused(
    body: bytes, tmp_path: Path, content_type: str = TYPE, max_bytes: int = LARGE
) -> str:
    """Why an upload is refused."""
    with pytest.raises(BadAdapter) as error:
        async with received_upload(
            in_pieces(body), content_type, scratch=tmp_path, max_bytes=max_bytes
        ):
            pass
    assert not list(tmp_path.iterdir())
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(
    "sent",
    [
        parts(),
        dict(reversed(parts().items())),
        archived(adapter()),
        archived(adapter("pirate/")),
        archived(gzip.compress(adapter("./"))),
    ],
    ids=["files", "manifest last", "tar", "below a directory", "gzip"],
)
async def test_an_upload_is_there_for_the_block_and_gone_afterwards(
    tmp_path: Path, sent: Mapping[str, bytes]
) -> None:
    body = in_pieces(form(sent.items()))
    async with received_upload(body, TYPE, scratch=tmp_path, max_bytes=LARGE) as upload:
        assert upload.manifest == MANIFEST
        assert is_the_adapter(upload.directory)
        assert {path.name for path in upload.directory.iterdir()} == set(CONTENT_FILES)
        AdapterContents(tmp_path / "stored").take_in(upload.directory, FamilyLimits())
    assert [path.name for path in tmp_path.iterdir()] == ["stored"]


@settings(max_examples=60)
@given(st.data(), st.booleans())
def test_however_the_bytes_are_split_the_same_comes_out(data: st.DataObject, tar: bool) -> None:
    body = form((archived(adapter()) if tar else parts()).items())
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=30)))

    async def split() -> AsyncIterator[bytes]:
        for begin, end in zip([0, *cuts], [*cuts, len(body)], strict=True):
            yield body[begin:end]

    async def receive(scratch: Path) -> None:
        async with received_upload(split(), TYPE, scratch=scratch, max_bytes=LARGE) as upload:
            assert is_the_adapter(upload.directory)

    with TemporaryDirectory() as name:
        asyncio.run(receive(Path(name)))
        assert not list(Path(name).iterdir())


@settings(max_examples=60)
@given(st.integers(0, 8 * len(form(parts().items())) - 1), st.booleans())
def test_garbage_is_refused_or_is_another_upload(bit: int, cut: bool) -> None:
    body = bytearray(form(parts().items()))
    body[bit // 8] ^= 1 << bit % 8
    sent = bytes(body[: bit // 8] if cut else body)

    async def receive(scratch: Path) -> None:
        try:
            async with received_upload(
                in_pieces(sent), TYPE, scratch=scratch, max_bytes=LARGE
            ) as upload:
                # The end of the last line is no part of the form.
                assert not cut or bit // 8 >= len(body) - len(b"\r\n")
                assert {path.name for path in upload.directory.iterdir()} == set(CONTENT_FILES)
        except BadAdapter:
            pass

    with TemporaryDirectory() as name:
        asyncio.run(receive(Path(name)))
        assert not list(Path(name).iterdir())


async def test_hashes_that_the_manifest_names_are_looked_at(tmp_path: Path) -> None:
    right = {name: hashlib.sha256(data).hexdigest() for name, data in FILES.items()}
    for sent in (
        parts(sha256=right),
        archived(adapter(), sha256={CONFIG_FILE: right[CONFIG_FILE]}),
    ):
        body = in_pieces(form(sent.items()))
        async with received_upload(body, TYPE, scratch=tmp_path, max_bytes=LARGE) as upload:
            assert is_the_adapter(upload.directory)
    wrong = {WEIGHTS_FILE: "0" * 64}
    for sent in (parts(sha256=wrong), archived(adapter(), sha256=wrong)):
        why = await refused(form(sent.items()), tmp_path)
        assert f"{WEIGHTS_FILE} has the SHA-256 {right[WEIGHTS_FILE]}, its manifest" in why


@pytest.mark.parametrize(
    ("manifest", "why"),
    [
        (b"", "is no JSON"),
        (b"{", "is no JSON"),
        (b"\xff", "is no JSON"),
        (b"[" * 60_000, "is no JSON: too deep"),
        (b"[]", "is [], not a JSON object"),
        (b'{"rank": 8}', "has a field 'rank': it may have name, version, base"),
        (b'{"sha256": []}', "sha256 in the upload's manifest is [], no JSON object"),
        (b'{"sha256": {"x": "a"}}', "of 'x': it says 64 hexadecimal digits"),
        (b'{"sha256": {"adapter_config.json": 1}}', "says 1 of 'adapter_config.json'"),
        (b'{"a": "' + b"x" * 70_000, "manifest has more than 65536 bytes"),
    ],
)
async def test_a_manifest_that_is_none_is_refused(
    tmp_path: Path, manifest: bytes, why: str
) -> None:
    sent = parts() | {"manifest": manifest}
    assert why in await refused(form(sent.items()), tmp_path)


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        ([], "has the parts (none)"),
        ([("manifest", b"{}")], "has the parts manifest; it needs manifest, then"),
        (list(FILES.items()), f"has the parts {CONFIG_FILE}, {WEIGHTS_FILE}; it needs"),
        ([*parts().items(), ("archive", adapter())], "has the parts adapter_config.json, "),
        ([("manifest", b"{}"), ("../x", b"")], "has a part named '../x'"),
        ([("manifest", b"{}"), ("", b"")], "has a part named ''"),
        ([("manifest", b"{}")] * 2, "has two parts named manifest"),
        ([*archived(packed((CONFIG_FILE, b"{}"))).items()], f"archive has no {WEIGHTS_FILE}"),
        ([*archived(packed(("x", b"{}"))).items()], f"has no {CONFIG_FILE} and no {WEIGHTS_FILE}"),
        ([*archived(packed(("../x", b"{}"))).items()], "leads out of it"),
    ],
)
async def test_parts_that_are_no_adapter_are_refused(
    tmp_path: Path, sent: list[tuple[str, bytes]], why: str
) -> None:
    assert why in await refused(form(sent), tmp_path)


@pytest.mark.parametrize(
    "content_type",
    [
        *("", "application/json", "multipart/form-data", "multipart/form-data; boundary="),
        *("multipart/form-data; boundary=" + "b" * 300, "multipart/mixed; boundary=b", "é☃; a"),
    ],
)
async def test_a_type_without_a_boundary_is_refused(tmp_path: Path, content_type: str) -> None:
    assert "boundary" in await refused(form(parts().items()), tmp_path, content_type)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "is cut off"),
        (form(parts().items())[:-10], "is cut off"),
        (form(parts().items())[:700], "is cut off"),
        (b'{"name": "pirate"}', "is no multipart body"),
        (b"--a-boundary\r\n" + b"X-Header: 1\r\n" * 100, "is no multipart body"),
        (b"--a-boundary\r\nX-Header: " + b"1" * 10_000, "is no multipart body"),
        (b"--a-boundary\r\n\r\n\r\n--a-boundary--\r\n", "has a part named ''"),
    ],
)
async def test_a_body_that_is_no_upload_is_refused(tmp_path: Path, body: bytes, why: str) -> None:
    assert why in await refused(body, tmp_path)


async def test_what_is_too_large_is_refused_while_it_comes(tmp_path: Path) -> None:
    size = len(FILES[WEIGHTS_FILE])
    why = await refused(form(parts().items()), tmp_path, max_bytes=size - 1)
    assert why.startswith(f"the upload's {WEIGHTS_FILE} has more than {size - 1} bytes")
    taken = 0

    async def endless(begin: bytes) -> AsyncIterator[bytes]:
        nonlocal taken
        yield begin
        while True:
            yield bytes(1 << 16)
            taken += 1 << 16

    opening = form([("manifest", b"{}"), ("archive", b"")]).partition(b"\r\n--a-boundary--")[0]
    for begin in (opening, b"\r\n", form([])):
        taken = 0
        with pytest.raises(BadAdapter, match=r"more than|larger than|no multipart"):
            async with received_upload(endless(begin), TYPE, scratch=tmp_path, max_bytes=LARGE):
                pass
        assert taken < 200 << 20
        assert not list(tmp_path.iterdir())


async def test_a_client_that_goes_away_leaves_nothing(tmp_path: Path) -> None:
    body = form(parts().items())

    async def gone() -> AsyncIterator[bytes]:
        yield body[:-100]
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        async with received_upload(gone(), TYPE, scratch=tmp_path, max_bytes=LARGE):
            pass
    assert not list(tmp_path.iterdir())


async def test_a_request_that_is_cancelled_leaves_nothing(tmp_path: Path) -> None:
    waits = asyncio.Event()

    async def silent() -> AsyncIterator[bytes]:
        yield form(parts().items())[:-100]
        yield bytes(1 << 20)
        waits.set()
        await asyncio.Event().wait()

    async def receive() -> None:
        async with received_upload(silent(), TYPE, scratch=tmp_path, max_bytes=2 * LARGE):
            pass

    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(receive())
        await waits.wait()
        task.cancel()
    assert not list(tmp_path.iterdir())


async def test_what_the_block_says_of_a_file_is_told_of_the_upload(tmp_path: Path) -> None:
    sent = parts() | {WEIGHTS_FILE: b"none"}
    stored = AdapterContents(tmp_path / "stored")
    with pytest.raises(BadAdapter, match=f"^'upload/{WEIGHTS_FILE}': "):
        async with received_upload(
            in_pieces(form(sent.items())), TYPE, scratch=tmp_path / "scratch", max_bytes=LARGE
        ) as upload:
            stored.take_in(upload.directory, FamilyLimits())
    assert not list((tmp_path / "scratch").iterdir())


async def test_weights_are_never_in_memory(tmp_path: Path) -> None:
    size = 64 << 20
    begin, end = form([("manifest", b"{}"), (CONFIG_FILE, b"{}"), (WEIGHTS_FILE, b"?")]).split(b"?")

    async def large() -> AsyncIterator[bytes]:
        yield begin
        for _ in range(size >> 16):
            yield bytes(1 << 16)
        yield end

    tracemalloc.start()
    try:
        async with received_upload(large(), TYPE, scratch=tmp_path, max_bytes=size) as upload:
            assert (upload.directory / WEIGHTS_FILE).stat().st_size == size
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()


async def test_a_scratch_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreUnavailable, match="cannot write below"):
        async with received_upload(
            in_pieces(b""), TYPE, scratch=tmp_path / "file" / "scratch", max_bytes=LARGE
        ):
            pass


@pytest.mark.parametrize("archive", ["", adapter().hex()], ids=["files", "archive"])
def test_a_disk_without_room_is_told_and_leaves_nothing(tmp_path: Path, archive: str) -> None:
    program = f"""
        import asyncio, resource
        from pathlib import Path
        from penstock.control.errors import StoreUnavailable
        from tests.control.adapter_sources import test_upload as it

        async def main():
            sent = it.archived(bytes.fromhex({archive!r})) if {bool(archive)} else it.parts()
            body = it.in_pieces(it.form(sent.items()))
            resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
            scratch = Path({str(tmp_path / "scratch")!r})
            try:
                async with it.received_upload(body, it.TYPE, scratch=scratch, max_bytes=1 << 20):
                    pass
            except StoreUnavailable as error:
                print(error, list(scratch.iterdir()))

        asyncio.run(main())
    """
    done = subprocess.run([sys.executable, "-c", dedent(program)], capture_output=True, text=True)
    assert "cannot write below" in done.stdout, done.stderr
    assert done.stdout.strip().endswith("[]")
