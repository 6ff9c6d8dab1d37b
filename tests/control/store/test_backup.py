"""A head's data goes to one file while it is written to, and back to an empty directory."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.adapters.fitness import FamilyLimits
from penstock.control.errors import Code
from penstock.control.store import backup
from penstock.control.store.adapters.content import AdapterContents
from penstock.control.store.adapters.evidence_reports import EvidenceReports
from penstock.control.store.sqlite import SqliteStore
from penstock.control.store.store import IDENTITY, Author, Change, Key
from tests.fakes.control_errors import raises_code
from tests.fakes.control_values import NOON
from tests.fakes.lora_adapters import random_adapter

ME = Author("me", "try it")
SECRETS = ("cluster.token", "admin.token", "secrets/openai.key", "node-agent.id")


async def put(store: SqliteStore, key: Key) -> None:
    await store.apply([Change(key, {"is": key.name})], ME, NOON)


async def names(data: Path) -> set[str]:
    store = await SqliteStore.open(data / "penstock.db")
    found = {key.name for key in (await store.load()).documents}
    await store.close()
    return found


@pytest.fixture
async def data(tmp_path: Path) -> Path:
    """The data directory of a head, with an adapter, a report and secrets."""
    data = tmp_path / "data"
    store = await SqliteStore.open(data / "penstock.db")
    await put(store, IDENTITY)
    await store.close()
    random_adapter(tmp_path / "adapter", 1, base_model_name_or_path="m")
    AdapterContents(data / "adapters").take_in(tmp_path / "adapter", FamilyLimits())
    EvidenceReports(data / "evidence").put(b"{}")
    for name in SECRETS:
        (data / name).parent.mkdir(exist_ok=True)
        (data / name).write_text(f"the secret of {name}")
    return data


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    folder = tmp_path / "empty"
    folder.mkdir()
    return folder


async def test_a_backup_has_what_a_running_store_has_not_yet_in_its_file(
    data: Path, empty: Path, tmp_path: Path
) -> None:
    store, file = await SqliteStore.open(data / "penstock.db"), tmp_path / "monday"
    await put(store, Key("thing", "one"))
    made = backup.back_up(data, file)
    await put(store, Key("thing", "two"))
    await store.close()
    assert (made.revision, made.at, made.adapters) == (2, NOON.isoformat(), 1)
    assert backup.restore(file, empty) == made
    assert await names(empty) == {"identity", "one"}
    assert file.stat().st_mode & 0o777 == 0o600
    assert sorted(each.name for each in tmp_path.iterdir() if "monday" in each.name) == ["monday"]


def test_adapters_and_reports_come_back_and_secrets_do_not(
    data: Path, empty: Path, tmp_path: Path
) -> None:
    file = tmp_path / "monday"
    backup.back_up(data, file)
    assert b"the secret of" not in file.read_bytes()
    backup.restore(file, empty)
    assert {each.name for each in empty.iterdir()} == {"penstock.db", "adapters", "evidence"}
    contents = AdapterContents(empty / "adapters")
    (digest,) = contents.stored()
    assert contents.is_intact(digest)
    (report,) = (empty / "evidence").iterdir()
    assert EvidenceReports(empty / "evidence").get(report.stem) == b"{}"
    assert (empty / "penstock.db").stat().st_mode & 0o777 == 0o600


async def test_a_store_that_was_restored_says_so(data: Path, empty: Path, tmp_path: Path) -> None:
    backup.back_up(data, tmp_path / "monday")
    backup.restore(tmp_path / "monday", empty)
    store = await SqliteStore.open(empty / "penstock.db")
    assert (await store.load()).documents[IDENTITY].document["restored"] is True
    await store.close()


def test_nothing_is_restored_over_anything(data: Path, empty: Path, tmp_path: Path) -> None:
    backup.back_up(data, tmp_path / "monday")
    (empty / "penstock.db-wal").touch()
    with raises_code(Code.INVALID_SETTING, match=r"is not empty, it has penstock.db-wal: put it"):
        backup.restore(tmp_path / "monday", empty)
    with raises_code(Code.INVALID_SETTING, match="monday exists, nothing is written"):
        backup.back_up(data, tmp_path / "monday")


def cut(file: Path) -> None:
    """What is left of a copy that was broken off."""
    file.write_bytes(file.read_bytes()[:-20_000])


def bent(file: Path) -> None:
    """A byte of an adapter is another."""
    content = bytearray(file.read_bytes())
    with tarfile.open(file) as tar:
        found = next(each for each in tar if each.name.endswith("safetensors"))
    content[found.offset_data + found.size // 2] ^= 1
    file.write_bytes(content)


def of_a_later_version(file: Path) -> None:
    """Its list says that it is of another format."""
    with tarfile.open(file) as tar:
        listed = tar.getmember(backup.LIST)
    content = file.read_bytes()
    at = listed.offset_data
    text = content[at : at + listed.size]
    newer = text.replace(b'"format": 1', b'"format": 9')
    file.write_bytes(content[:at] + newer + content[at + listed.size :])


def with_a_way_out(file: Path) -> None:
    """One of its members would lie elsewhere."""
    with tarfile.open(file, "w") as tar:
        tar.add(__file__, "../elsewhere")
        tar.add(__file__, backup.LIST)


def with_a_link(file: Path) -> None:
    with tarfile.open(file, "w") as tar:
        link = tarfile.TarInfo("adapters")
        link.type, link.linkname = tarfile.SYMTYPE, "/nowhere"
        tar.addfile(link)


def with_another_list(file: Path) -> None:
    with tarfile.open(file, "w") as tar:
        listed = tarfile.TarInfo(backup.LIST)
        text = b'{"format": 1, "files": ["penstock.db"]}'
        listed.size = len(text)
        tar.addfile(listed, io.BytesIO(text))


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        (cut, "cannot be read|is not whole: it ends before its list"),
        (bent, "is damaged: adapters/.*use another backup"),
        (of_a_later_version, "has format 9, this version reads 1: restore it with the Penstock"),
        (with_a_way_out, "is not whole"),
        (with_a_link, "is not whole"),
        (with_another_list, "is not whole"),
        (lambda file: file.write_text("nothing" * 100), "cannot be read"),
        (lambda file: file.unlink(), "there is no backup"),
    ],
)
def test_what_is_no_whole_backup_is_refused_and_leaves_nothing(
    data: Path, empty: Path, tmp_path: Path, harm: Callable[[Path], object], why: str
) -> None:
    file = tmp_path / "monday"
    backup.back_up(data, file)
    harm(file)
    with raises_code(Code.INVALID_SETTING, match=why):
        backup.restore(file, empty)
    assert not list(empty.iterdir())
    assert not (tmp_path / "elsewhere").exists()


def test_a_directory_without_a_store_has_no_backup(empty: Path, tmp_path: Path) -> None:
    with raises_code(Code.INVALID_SETTING, match=r"there is no store .*penstock.db: name"):
        backup.back_up(empty, tmp_path / "monday")
    (empty / "penstock.db").touch()
    with raises_code(Code.INVALID_SETTING, match="has no store of Penstock"):
        backup.back_up(empty, tmp_path / "monday")
    assert {each.name for each in tmp_path.iterdir()} == {"empty"}


async def test_a_store_alone_is_what_the_version_before_wrote(
    data: Path, empty: Path, tmp_path: Path
) -> None:
    store = await SqliteStore.open(data / "penstock.db")
    await store.close()
    backup.restore(data / "penstock.db", empty)
    assert await names(empty) == {"identity"}


def test_the_list_has_the_digest_of_each_file(data: Path, tmp_path: Path) -> None:
    backup.back_up(data, tmp_path / "monday")
    with tarfile.open(tmp_path / "monday") as tar:
        *files, last = tar.getnames()
        listed = tar.extractfile(last)
        assert listed is not None
        assert set(json.load(listed)["files"]) == set(files)
