"""Two files come out of a tar of anybody's, or it is refused, and nothing else is ever written."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from penstock.adapters.version import CONFIG_FILE, CONTENT_FILES, WEIGHTS_FILE
from penstock.control.adapter_sources.tar_files import OTHER_BYTES, unpack
from penstock.control.errors import BadAdapter
from tests.control.adapter_sources.files import FILES, LARGE, is_the_adapter

LARGEST = {CONFIG_FILE: 1 << 20, WEIGHTS_FILE: LARGE}
FORMATS = [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT]


def packed(*members: tuple[str, bytes], kind: int = tarfile.PAX_FORMAT, **fields: object) -> bytes:
    """A tar of these members; `fields` are of each."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=kind) as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            for field, value in fields.items():
                setattr(info, field, value)
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def adapter(below: str = "", kind: int = tarfile.PAX_FORMAT, **fields: object) -> bytes:
    """A tar of the adapter."""
    return packed(*((below + name, data) for name, data in FILES.items()), kind=kind, **fields)


def unpacked(archive: bytes, tmp_path: Path) -> Path:
    """The directory with what came out."""
    (tmp_path / "archive").write_bytes(archive)
    directory = tmp_path / "unpacked"
    directory.mkdir()
    unpack(tmp_path / "archive", directory, LARGEST)
    assert {path.name for path in directory.iterdir()} <= set(CONTENT_FILES)
    return directory


def refused(archive: bytes, tmp_path: Path) -> str:
    """Why an archive is refused."""
    with pytest.raises(BadAdapter) as error:
        unpacked(archive, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"archive", "unpacked"}
    return str(error.value)


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("below", ["", "./", "lora/", "./lora/"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_every_kind_of_tar_is_read(
    tmp_path: Path, kind: int, below: str, pack: Callable[[bytes], bytes]
) -> None:
    assert is_the_adapter(unpacked(pack(adapter(below, kind=kind)), tmp_path))


@pytest.mark.parametrize("kind", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_names_and_times_that_need_headers_of_their_own_are_read(tmp_path: Path, kind: int) -> None:
    archive = adapter("é" + "l" * 300 + "/", kind=kind, mtime=1.5)
    assert is_the_adapter(unpacked(archive, tmp_path))


def test_other_files_and_directories_are_passed_over(tmp_path: Path) -> None:
    members = [("lora/README.md", b"a card"), ("lora/._adapter_config.json", b"x" * 163)]
    members += [(f"lora/{name}", data) for name, data in FILES.items()]
    members += [(f"lora/checkpoint-5/{name}", b"another") for name in FILES]
    buffer = io.BytesIO(packed(*members))
    with tarfile.open(fileobj=buffer, mode="a") as tar:
        directory = tarfile.TarInfo("lora/checkpoint-5")
        directory.type = tarfile.DIRTYPE
        tar.addfile(directory)
    assert is_the_adapter(unpacked(buffer.getvalue(), tmp_path))


def test_an_archive_without_its_end_is_whole_if_its_files_are(tmp_path: Path) -> None:
    end = sum(512 + len(data) + -len(data) % 512 for data in FILES.values())
    archive = adapter(kind=tarfile.USTAR_FORMAT)[:end]
    assert is_the_adapter(unpacked(archive, tmp_path))


@pytest.mark.parametrize(
    "name",
    [
        *("../adapter_config.json", "lora/../../adapter_config.json", "/etc/cron.d/job"),
        *("/adapter_config.json", "..", "lora/..", "./../x"),
    ],
)
def test_a_name_that_leads_out_is_refused(tmp_path: Path, name: str) -> None:
    why = refused(packed((name, b"{}")) + adapter(), tmp_path)
    assert f"a member {name!r}, which leads out of it" in why


@pytest.mark.parametrize(
    "kind",
    [
        *(tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE),
        *(tarfile.GNUTYPE_SPARSE, b"V", b"M", b"!"),
    ],
)
@pytest.mark.parametrize("name", [CONFIG_FILE, "latest"])
def test_what_is_no_file_is_refused(tmp_path: Path, kind: bytes, name: str) -> None:
    link = tarfile.TarInfo(name)
    link.type, link.linkname = kind, "/etc/passwd"
    why = refused(link.tobuf(tarfile.USTAR_FORMAT) + adapter(), tmp_path)
    assert f"the archive's {name!r} is no file" in why


def test_two_adapters_in_one_archive_are_refused(tmp_path: Path) -> None:
    archive = packed(("a/" + CONFIG_FILE, b"{}"), ("b/" + CONFIG_FILE, b"{}"))
    assert "more than one adapter_config.json" in refused(archive, tmp_path)


def test_files_that_are_too_large_are_refused(tmp_path: Path) -> None:
    why = refused(gzip.compress(packed((WEIGHTS_FILE, bytes(LARGE + 1)))), tmp_path)
    assert (
        why
        == f"the archive's {WEIGHTS_FILE} has more than {LARGE} bytes, which is all that is taken"
    )


def member(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    """A header that says so many bytes come."""
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    return info.tobuf(tarfile.GNU_FORMAT)


def test_an_archive_that_unpacks_to_far_more_is_given_up_in_time(tmp_path: Path) -> None:
    zeros = bytes(1 << 20)
    size = sum(LARGEST.values()) + OTHER_BYTES + 1
    bomb = io.BytesIO()
    with gzip.open(bomb, "wb", compresslevel=1) as stream:
        stream.write(member("zeros", size))
        for _ in range(size // len(zeros) + 2):
            stream.write(zeros)
    assert "unpacks to more than" in refused(bomb.getvalue(), tmp_path)


def test_a_tail_of_an_archive_counts_too(tmp_path: Path) -> None:
    bomb = io.BytesIO()
    with gzip.open(bomb, "wb", compresslevel=1) as stream:
        stream.write(adapter())
        for _ in range(80):
            stream.write(bytes(1 << 20))
    assert "unpacks to more than" in refused(bomb.getvalue(), tmp_path)


@pytest.mark.parametrize("kind", [b"x", b"g", b"L", b"K"])
def test_a_header_of_any_length_is_not_read(tmp_path: Path, kind: bytes) -> None:
    assert "a header of 1073741824 bytes" in refused(member("x", 1 << 30, kind), tmp_path)


def record(said: str) -> bytes:
    """A record of a pax header, of less than 95 characters."""
    return f"{len(said) + 4} {said}\n".encode()


def pax(records: bytes) -> bytes:
    """A pax header with these records, before the adapter."""
    return member("x", len(records), b"x") + records + bytes(-len(records) % 512) + adapter()


@pytest.mark.parametrize(
    ("records", "why"),
    [
        (b"no record", "a pax header that is none"),
        (b"9999 path=a\n", "a pax header that is none"),
        (b"0 path=a\n", "a pax header that is none"),
        (b"-1 path=a\n", "a pax header that is none"),
        (record("GNU.sparse.major=1"), "a sparse file"),
        (record("size=-12"), "has no size"),
        (record("size=many"), "has no size"),
        (record("path=../"), "leads out of it"),
        (record("size=99999999999999999999"), "has no size"),
        (record("size=999999999"), "adapter_config.json has more than 1048576 bytes"),
    ],
)
def test_pax_headers_that_lie_are_refused(tmp_path: Path, records: bytes, why: str) -> None:
    assert why in refused(pax(records), tmp_path)


def test_chains_and_crowds_of_headers_end(tmp_path: Path) -> None:
    empty = member("x", 0, b"x")
    assert "more than 10000 members" in refused(empty * 10_001, tmp_path)


@pytest.mark.parametrize("size", [b"\xff" * 12, b"-0000000001 ", b"9" * 11 + b"\0", bytes(12)])
def test_a_size_that_is_none_is_refused(tmp_path: Path, size: bytes) -> None:
    block = bytearray(member("x", 0))
    block[124:136] = size
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    assert "has no size" in refused(bytes(block), tmp_path)


@pytest.mark.parametrize(
    ("archive", "why"),
    [
        (b"PK\x03\x04" + bytes(600), "no tar, neither plain nor gzip"),
        (b"\x28\xb5\x2f\xfd" + bytes(600), "no tar, neither plain nor gzip"),
        (b"x", "is cut off"),
        (b"\x1f\x8b" + bytes(30), "broken gzip"),
        (gzip.compress(adapter())[:-4], "its gzip has no end"),
        (gzip.compress(adapter())[:-8] + bytes(8), "broken gzip"),
        (gzip.compress(adapter()[:1000]), "is cut off"),
    ],
)
def test_what_is_no_archive_is_refused(tmp_path: Path, archive: bytes, why: str) -> None:
    assert why in refused(archive, tmp_path)


@given(st.integers(0, len(adapter()) * 8 - 1), st.sampled_from(FORMATS))
@example(0, tarfile.USTAR_FORMAT)
def test_a_flipped_bit_is_refused_or_changes_no_more_than_the_files(bit: int, kind: int) -> None:
    archive = bytearray(adapter("lora/", kind=kind))
    archive[bit // 8 % len(archive)] ^= 1 << bit % 8
    with TemporaryDirectory() as name:
        with suppress(BadAdapter):
            unpacked(bytes(archive), Path(name))
        assert {path.name for path in Path(name).iterdir()} == {"archive", "unpacked"}


@given(st.binary(max_size=3000))
def test_noise_is_no_archive(noise: bytes) -> None:
    with TemporaryDirectory() as name:
        try:
            directory = unpacked(noise, Path(name))
        except BadAdapter:
            return
        assert not list(directory.iterdir())
