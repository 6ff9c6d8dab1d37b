"""Directories, what ships with Penstock and a hub's cache are read in place, or said no to."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.adapters.fitness import FamilyLimits
from penstock.adapters.version import CONFIG_FILE, WEIGHTS_FILE
from penstock.control.adapter_sources.hugging_face import hub_cache
from penstock.control.adapter_sources.sources import MachineSources
from penstock.control.errors import BadAdapter
from penstock.control.store.adapters.content import AdapterContents
from tests.control.adapter_sources.files import FILES, LARGE, is_the_adapter, written

COMMIT = "0123456789abcdef0123456789abcdef01234567"
OTHER_COMMIT = "f" * 40


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "hub"


@pytest.fixture
def sources(tmp_path: Path, cache: Path) -> MachineSources:
    return MachineSources(tmp_path / "scratch", cache)


@pytest.fixture
def lora(tmp_path: Path) -> Path:
    return written(tmp_path / "lora")


@pytest.fixture
def cached(cache: Path) -> Path:
    """A repository as the hub's tools keep it: links into blobs."""
    repository = cache / "models--acme--lora"
    blobs = written(repository / "blobs")
    for commit in (COMMIT, OTHER_COMMIT):
        snapshot = repository / "snapshots" / commit
        snapshot.mkdir(parents=True)
        for name in FILES:
            (snapshot / name).symlink_to(os.path.relpath(blobs / name, snapshot))
    for ref, commit in (("main", COMMIT), ("v2", OTHER_COMMIT + "\n"), ("refs/pr/1", COMMIT)):
        (repository / "refs" / ref).parent.mkdir(parents=True, exist_ok=True)
        (repository / "refs" / ref).write_text(commit)
    return repository


def refused(sources: MachineSources, source: str, max_bytes: int = LARGE) -> str:
    """Why a source is refused."""
    with pytest.raises(BadAdapter) as error, sources.fetched(source, max_bytes):
        pass
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_directory_is_used_in_place_and_left_there(sources: MachineSources, lora: Path) -> None:
    with sources.fetched(str(lora), LARGE) as directory:
        assert directory == lora
    assert is_the_adapter(lora)


@pytest.mark.parametrize("name", ["penstock-mini/pirate", "penstock-mini/json"])
def test_what_ships_with_penstock_has_a_name(
    sources: MachineSources, tmp_path: Path, name: str
) -> None:
    with sources.fetched(name, 1 << 30) as directory:
        taken = AdapterContents(tmp_path / "stored").take_in(directory, FamilyLimits())
    assert taken.base_model == "penstock-mini"


@pytest.mark.parametrize(
    "source", ["", "pirate", "models/lora", "penstock-mini/../json", "https://hub/lora", "x\ny"]
)
def test_what_is_no_source_is_told_those_that_are(sources: MachineSources, source: str) -> None:
    why = refused(sources, source)
    assert repr(source) in why
    assert "s3://bucket/prefix" in why
    assert "'penstock-mini/pirate'" in why


def without_weights(lora: Path) -> None:
    (lora / WEIGHTS_FILE).rename(lora / "adapter_model.bin")


def without_anything(lora: Path) -> None:
    for name in FILES:
        (lora / name).unlink()


def with_a_pipe(lora: Path) -> None:
    (lora / WEIGHTS_FILE).unlink()
    os.mkfifo(lora / WEIGHTS_FILE)


def with_a_link_to_nowhere(lora: Path) -> None:
    (lora / WEIGHTS_FILE).unlink()
    (lora / WEIGHTS_FILE).symlink_to("../blobs/abc")


def a_file(lora: Path) -> None:
    shutil.rmtree(lora)
    lora.write_text("a file")


def with_a_large_config(lora: Path) -> None:
    (lora / CONFIG_FILE).write_bytes(bytes((1 << 20) + 1))


def below_a_file(lora: Path) -> None:
    shutil.rmtree(lora.parent)
    lora.parent.write_text("a file")


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (
            without_weights,
            "has no adapter_model.safetensors, but 'adapter_config.json', 'adapter_m",
        ),
        (without_anything, "has no adapter_config.json, but nothing; an adapter is"),
        (with_a_pipe, "adapter_model.safetensors of .* is no file"),
        (with_a_link_to_nowhere, "is a link to '../blobs/abc', which is not there"),
        (a_file, "is no directory; name the one that its files are in"),
        (with_a_large_config, "adapter_config.json of .* has more than 1048576 bytes"),
        (shutil.rmtree, "is not there, on the machine of the head"),
        (below_a_file, "cannot be read by the head: Not a directory"),
    ],
)
def test_a_directory_that_holds_no_adapter_is_refused_with_what_is_there(
    sources: MachineSources, tmp_path: Path, broken: Callable[[Path], None], why: str
) -> None:
    lora = written(tmp_path / "models" / "lora")
    broken(lora)
    with pytest.raises(BadAdapter, match=why) as error, sources.fetched(str(lora), LARGE):
        pass
    assert repr(str(lora)) in str(error.value)


@pytest.mark.parametrize("path", ["/a\0b", "/\ud800", "/" + "a" * 300])
def test_a_path_that_can_be_none_is_refused(sources: MachineSources, path: str) -> None:
    assert refused(sources, path).encode().isascii()


def test_weights_are_as_large_as_asked_for_at_most(sources: MachineSources, lora: Path) -> None:
    size = len(FILES[WEIGHTS_FILE])
    with sources.fetched(str(lora), size):
        pass
    assert f"more than {size - 1} bytes" in refused(sources, str(lora), size - 1)


@pytest.mark.parametrize(
    ("source", "commit"),
    [
        ("hf:acme/lora", COMMIT),
        ("hf:acme/lora@main", COMMIT),
        ("hf:acme/lora@v2", OTHER_COMMIT),
        ("hf:acme/lora@refs/pr/1", COMMIT),
        (f"hf:acme/lora@{OTHER_COMMIT}", OTHER_COMMIT),
    ],
)
def test_a_revision_in_the_hubs_cache_is_used_in_place(
    sources: MachineSources, cached: Path, tmp_path: Path, source: str, commit: str
) -> None:
    with sources.fetched(source, LARGE) as directory:
        assert directory == cached / "snapshots" / commit
        assert is_the_adapter(directory)
        AdapterContents(tmp_path / "stored").take_in(directory, FamilyLimits())


def test_what_the_hubs_cache_lacks_is_told_with_what_it_has(
    sources: MachineSources, cached: Path, cache: Path
) -> None:
    why = refused(sources, "hf:acme/other")
    assert str(cache) in why
    assert "has no models--acme--other; the head downloads nothing" in why
    assert "hf download acme/other" in why
    why = refused(sources, "hf:acme/lora@v3")
    assert f"{str(cached)!r} has no revision 'v3', but refs 'main', 'refs', 'v2'" in why
    assert COMMIT in why


def test_a_cache_that_is_not_there_is_named(sources: MachineSources, cache: Path) -> None:
    assert f"{str(cache)!r}, the Hugging Face cache" in refused(sources, "hf:acme/lora")


def test_a_snapshot_of_which_a_file_was_not_fetched_is_refused(
    sources: MachineSources, cached: Path
) -> None:
    (cached / "snapshots" / COMMIT / WEIGHTS_FILE).unlink()
    why = refused(sources, "hf:acme/lora")
    assert "has no adapter_model.safetensors, but 'adapter_config.json'" in why
    (cached / "snapshots" / OTHER_COMMIT).rename(cached / "gone")
    assert "has no revision 'v2'" in refused(sources, "hf:acme/lora@v2")


@pytest.mark.parametrize("told", ["../../../lora", "", "\xff" * 99, COMMIT + "0"])
def test_a_ref_that_is_no_commit_leads_nowhere(
    sources: MachineSources, cached: Path, lora: Path, told: str
) -> None:
    (cached / "refs" / "main").write_text(told)
    assert "has no revision 'main'" in refused(sources, "hf:acme/lora")


@pytest.mark.parametrize(
    "source",
    [
        *("hf:", "hf:lora", "hf:a/b/c", "hf:../lora", "hf:acme/..", "hf:acme/lo--ra", "hf:a/b c"),
        *("hf:acme/lora@", "hf:acme/lora@../main", "hf:acme/lora@/etc", "hf:acme/lora@a\0b"),
    ],
)
def test_a_hubs_name_that_can_be_none_is_refused(
    sources: MachineSources, cached: Path, source: str
) -> None:
    assert "names no re" in refused(sources, source)


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        ({}, "~/.cache/huggingface/hub"),
        ({"XDG_CACHE_HOME": "/xdg"}, "/xdg/huggingface/hub"),
        ({"HF_HOME": "/hf", "XDG_CACHE_HOME": "/xdg"}, "/hf/hub"),
        ({"HUGGINGFACE_HUB_CACHE": "/old", "HF_HOME": "/hf"}, "/old"),
        ({"HF_HUB_CACHE": "/cache", "HUGGINGFACE_HUB_CACHE": "/old"}, "/cache"),
        ({"HF_HUB_CACHE": "~/cache"}, "~/cache"),
    ],
)
def test_the_hubs_cache_is_where_its_own_tools_have_it(
    variables: dict[str, str], place: str
) -> None:
    assert hub_cache(variables) == Path(place).expanduser()


def test_neither_boto3_nor_the_replica_is_loaded_before_somebody_asks() -> None:
    program = (
        "import sys\n"
        "import penstock.control.head\n"
        "import penstock.control.adapter_sources.sources\n"
        "import penstock.control.adapter_sources.upload\n"
        "print([name for name in sys.modules if name.startswith(('boto', 'penstock.replica'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
