"""Adapters come in whole and as their digest says, whatever the source or the disk does."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from textwrap import dedent

import pytest

from penstock.adapters.fitness import FamilyLimits
from penstock.adapters.version import CONFIG_FILE, WEIGHTS_FILE, Digest
from penstock.control.errors import BadAdapter, StoreUnavailable
from penstock.control.store.adapters.content import AdapterContents

SHIPPED = Path("replica/penstock/replica/default_model/weights/adapters")
ANY = FamilyLimits()


@pytest.fixture
def contents(tmp_path: Path) -> AdapterContents:
    return AdapterContents(tmp_path / "adapters")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A copy of an adapter that PEFT wrote, to be broken."""
    return Path(shutil.copytree(SHIPPED / "pirate", tmp_path / "source"))


def left_over(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "adapters" / "incoming").iterdir())


def test_an_adapter_is_stored_as_it_was(contents: AdapterContents, tmp_path: Path) -> None:
    taken = contents.take_in(SHIPPED / "pirate", ANY)
    directory = contents.directory_of(taken.digest)
    assert directory is not None
    for name in (CONFIG_FILE, WEIGHTS_FILE):
        assert (directory / name).read_bytes() == (SHIPPED / "pirate" / name).read_bytes()
    assert {path.name for path in directory.iterdir()} == {CONFIG_FILE, WEIGHTS_FILE}
    assert (taken.facts.rank, taken.base_model) == (8, "penstock-mini")
    assert contents.stored() == {taken.digest}
    assert contents.is_intact(taken.digest)
    assert left_over(tmp_path) == []


def test_nothing_is_stored_before_the_first(contents: AdapterContents) -> None:
    assert contents.stored() == frozenset()
    assert contents.directory_of(Digest("a" * 64)) is None
    assert not contents.is_intact(Digest("a" * 64))
    contents.remove(Digest("a" * 64))


def test_the_source_may_go_afterwards(contents: AdapterContents, source: Path) -> None:
    taken = contents.take_in(source, ANY)
    shutil.rmtree(source)
    assert contents.is_intact(taken.digest)


def test_the_same_bytes_are_stored_once_however_many_come_at_once(
    contents: AdapterContents, tmp_path: Path
) -> None:
    with ThreadPoolExecutor(8) as threads:
        digests = set(
            threads.map(lambda _: contents.take_in(SHIPPED / "json", ANY).digest, range(16))
        )
    assert contents.stored() == digests
    assert len(digests) == 1
    assert left_over(tmp_path) == []


def test_links_are_followed_as_a_cache_of_a_hub_has_them(
    contents: AdapterContents, source: Path, tmp_path: Path
) -> None:
    linked = tmp_path / "linked"
    linked.mkdir()
    for name in (CONFIG_FILE, WEIGHTS_FILE):
        (linked / name).symlink_to(source / name)
    digest = contents.take_in(linked, ANY).digest
    assert digest == contents.take_in(source, ANY).digest
    stored = contents.directory_of(digest)
    assert stored is not None
    assert not (stored / WEIGHTS_FILE).is_symlink()


def cut(source: Path) -> None:
    weights = source / WEIGHTS_FILE
    weights.write_bytes(weights.read_bytes()[:-1])


def other_rank(source: Path) -> None:
    config = json.loads((source / CONFIG_FILE).read_text())
    (source / CONFIG_FILE).write_text(json.dumps(config | {"r": 16}))


def pickled(source: Path) -> None:
    (source / WEIGHTS_FILE).rename(source / "adapter_model.bin")


def piped(source: Path) -> None:
    (source / WEIGHTS_FILE).unlink()
    os.mkfifo(source / WEIGHTS_FILE)


def without_config(source: Path) -> None:
    (source / CONFIG_FILE).unlink()


def empty(source: Path) -> None:
    (source / WEIGHTS_FILE).write_bytes(b"")


def no_json(source: Path) -> None:
    (source / CONFIG_FILE).write_bytes(b"{")


def endless_config(source: Path) -> None:
    (source / CONFIG_FILE).unlink()
    (source / CONFIG_FILE).symlink_to("/dev/zero")


def a_directory(source: Path) -> None:
    (source / CONFIG_FILE).unlink()
    (source / CONFIG_FILE).mkdir()


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (cut, "adapter_model.safetensors'?: .* cut off"),
        (other_rank, "rank 8, its config says 16"),
        (pickled, "no other format is taken"),
        (piped, "is no file"),
        (without_config, "adapter_config.json' cannot be read: No such file"),
        (empty, "is empty"),
        (no_json, "adapter_config.json': it is no JSON"),
        (endless_config, "is no file"),
        (a_directory, "is no file"),
        (shutil.rmtree, "No such file"),
    ],
)
def test_what_cannot_be_served_is_refused_by_name_and_leaves_nothing(
    contents: AdapterContents, source: Path, tmp_path: Path, broken: object, why: str
) -> None:
    assert callable(broken)
    broken(source)
    with pytest.raises(BadAdapter, match=why) as refused:
        contents.take_in(source, ANY)
    assert str(source) in str(refused.value)
    assert contents.stored() == frozenset()
    assert left_over(tmp_path) == []


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        (FamilyLimits(max_bytes=1000), "more than 1000 bytes"),
        (FamilyLimits(max_rank=4), "its rank is 8"),
    ],
)
def test_what_the_family_does_not_take_leaves_nothing(
    contents: AdapterContents, tmp_path: Path, limits: FamilyLimits, why: str
) -> None:
    with pytest.raises(BadAdapter, match=why):
        contents.take_in(SHIPPED / "pirate", limits)
    assert contents.stored() == frozenset()
    assert left_over(tmp_path) == []


def test_a_path_that_can_be_none_is_refused(contents: AdapterContents) -> None:
    for path in ("/tmp/a\0b", "/tmp/\ud800", "/tmp/x\nERROR forged"):
        with pytest.raises(BadAdapter, match="cannot be read") as refused:
            contents.take_in(Path(path), ANY)
        assert str(refused.value).encode().isascii()
        assert "\n" not in str(refused.value)


def test_what_is_removed_is_gone_whole(contents: AdapterContents, tmp_path: Path) -> None:
    digest = contents.take_in(SHIPPED / "pirate", ANY).digest
    contents.remove(digest)
    assert contents.directory_of(digest) is None
    assert contents.stored() == frozenset()
    assert left_over(tmp_path) == []


def test_bytes_that_rotted_are_known_and_come_anew(contents: AdapterContents) -> None:
    digest = contents.take_in(SHIPPED / "pirate", ANY).digest
    directory = contents.directory_of(digest)
    assert directory is not None
    weights = directory / WEIGHTS_FILE
    weights.chmod(0o644)
    rotten = bytearray(weights.read_bytes())
    rotten[-1] ^= 1
    weights.write_bytes(rotten)
    assert not contents.is_intact(digest)
    assert contents.take_in(SHIPPED / "pirate", ANY).digest == digest
    assert contents.is_intact(digest)


def test_what_a_killed_process_had_begun_is_thrown_away(tmp_path: Path) -> None:
    begun = tmp_path / "adapters" / "incoming" / "half"
    begun.mkdir(parents=True)
    (begun / WEIGHTS_FILE).write_bytes(b"half")
    contents = AdapterContents(tmp_path / "adapters")
    contents.throw_away_leftovers()
    assert contents.stored() == frozenset()
    assert not begun.exists()


def test_rotten_bytes_are_mended_in_their_place_by_many_at_once(contents: AdapterContents) -> None:
    digest = contents.take_in(SHIPPED / "pirate", ANY).digest
    directory = contents.directory_of(digest)
    assert directory is not None
    (directory / WEIGHTS_FILE).unlink()
    assert not contents.is_intact(digest)
    with ThreadPoolExecutor(8) as threads:
        for done in [threads.submit(contents.take_in, SHIPPED / "pirate", ANY) for _ in range(8)]:
            assert done.result().digest == digest
    assert contents.is_intact(digest)


def test_only_digests_are_names_of_contents(contents: AdapterContents, tmp_path: Path) -> None:
    contents.take_in(SHIPPED / "pirate", ANY)
    (tmp_path / "adapters" / "lost+found").mkdir()
    (tmp_path / "beside").mkdir()
    assert len(contents.stored()) == 1
    for name in ("", ".", "..", "incoming", "lost+found", "../beside"):
        assert contents.directory_of(Digest(name)) is None
        assert not contents.is_intact(Digest(name))
        contents.remove(Digest(name))
    assert (tmp_path / "beside").is_dir()
    assert (tmp_path / "adapters" / "lost+found").is_dir()


def test_other_users_of_the_machine_may_read_what_is_stored(contents: AdapterContents) -> None:
    directory = contents.directory_of(contents.take_in(SHIPPED / "pirate", ANY).digest)
    assert directory is not None
    assert directory.stat().st_mode & 0o777 == 0o755
    assert (directory / WEIGHTS_FILE).stat().st_mode & 0o777 == 0o444


def test_a_link_to_nowhere_in_its_place_is_no_obstacle(
    contents: AdapterContents, tmp_path: Path
) -> None:
    digest = contents.take_in(SHIPPED / "pirate", ANY).digest
    contents.remove(digest)
    (tmp_path / "adapters" / digest).symlink_to(tmp_path / "nowhere")
    assert contents.take_in(SHIPPED / "pirate", ANY).digest == digest
    assert contents.is_intact(digest)


def test_a_disk_without_room_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    program = f"""
        import resource
        from pathlib import Path
        from penstock.adapters.fitness import FamilyLimits
        from penstock.control.errors import StoreUnavailable
        from penstock.control.store.adapters.content import AdapterContents

        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        contents = AdapterContents(Path({str(tmp_path / "adapters")!r}))
        try:
            contents.take_in(Path({str(SHIPPED / "pirate")!r}), FamilyLimits())
        except StoreUnavailable as error:
            print(error)
    """
    done = subprocess.run(
        [sys.executable, "-c", dedent(program)], capture_output=True, text=True, check=True
    )
    assert "cannot write below" in done.stdout
    assert AdapterContents(tmp_path / "adapters").stored() == frozenset()


def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreUnavailable, match="cannot write below"):
        AdapterContents(tmp_path / "file" / "adapters").take_in(SHIPPED / "pirate", ANY)


def test_a_directory_that_cannot_be_read_is_told_by_all_that_ask(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    contents = AdapterContents(tmp_path / "file")
    digest = Digest("a" * 64)
    for asked in (
        contents.stored,
        lambda: contents.directory_of(digest),
        lambda: contents.is_intact(digest),
        lambda: contents.remove(digest),
    ):
        with pytest.raises(StoreUnavailable, match=r"cannot read .*file: Not a directory"):
            asked()


def test_a_process_without_descriptors_tells_so_and_judges_no_content(tmp_path: Path) -> None:
    AdapterContents(tmp_path / "adapters").take_in(SHIPPED / "pirate", ANY)
    program = f"""
        import os, resource
        from pathlib import Path
        from penstock.control.errors import StoreUnavailable
        from penstock.control.store.adapters.content import AdapterContents

        contents = AdapterContents(Path({str(tmp_path / "adapters")!r}))
        (digest,) = contents.stored()
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
        for asked in (contents.stored, lambda: contents.is_intact(digest)):
            try:
                print(asked())
            except StoreUnavailable as error:
                print(error)
    """
    done = subprocess.run(
        [sys.executable, "-c", dedent(program)], capture_output=True, text=True, check=True
    )
    assert done.stdout.count("Too many open files") == 2, done.stdout


def unreadable(file: Path) -> None:
    """Reading it is an I/O error, as of a disk that is broken there: nobody's memory at 0."""
    file.unlink()
    file.symlink_to("/proc/self/mem")


def a_directory_in_its_place(file: Path) -> None:
    file.unlink()
    file.mkdir()


def a_link_to_itself(file: Path) -> None:
    file.unlink()
    file.symlink_to(file)


@pytest.mark.parametrize("name", [CONFIG_FILE, WEIGHTS_FILE])
@pytest.mark.parametrize("broken", [unreadable, a_directory_in_its_place, a_link_to_itself])
def test_a_file_that_cannot_be_read_is_not_intact_and_is_replaced(
    contents: AdapterContents, tmp_path: Path, broken: Callable[[Path], None], name: str
) -> None:
    digest = contents.take_in(SHIPPED / "pirate", ANY).digest
    directory = contents.directory_of(digest)
    assert directory is not None
    broken(directory / name)
    assert not contents.is_intact(digest)
    assert contents.take_in(SHIPPED / "pirate", ANY).digest == digest
    assert contents.is_intact(digest)
    assert contents.directory_of(digest) == directory
    assert left_over(tmp_path) == []


@pytest.mark.parametrize("closed", ["", CONFIG_FILE, WEIGHTS_FILE])
def test_what_may_not_be_read_is_not_intact_and_is_replaced(tmp_path: Path, closed: str) -> None:
    shutil.copytree(SHIPPED / "pirate", tmp_path / "source")
    program = f"""
        import os
        from pathlib import Path
        from penstock.adapters.fitness import FamilyLimits
        from penstock.control.store.adapters.content import AdapterContents

        if os.geteuid() == 0:
            os.seteuid(65534)  # rights say nothing to root
        contents = AdapterContents(Path("adapters"))
        digest = contents.take_in(Path("source"), FamilyLimits()).digest
        (contents.directory_of(digest) / {closed!r}).chmod(0)
        print(contents.is_intact(digest))
        contents.take_in(Path("source"), FamilyLimits())
        print(contents.is_intact(digest), os.listdir("adapters/incoming"))
    """
    tmp_path.chmod(0o777)
    done = subprocess.run(
        [sys.executable, "-c", dedent(program)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.stdout.split("\n")[:2] == ["False", "True []"], done.stderr
