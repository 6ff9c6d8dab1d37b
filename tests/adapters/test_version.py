"""A version is its bytes: equal content, equal digest; and its states go one way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from penstock.adapters.version import (
    CONFIG_FILE,
    NEXT_STATES,
    WEIGHTS_FILE,
    BadManifest,
    BadMove,
    StoredFile,
    VersionState,
    digest_of,
)
from tests.adapters.examples import version

CONFIG = StoredFile(CONFIG_FILE, "a" * 64, 1)
WEIGHTS = StoredFile(WEIGHTS_FILE, "b" * 64, 2)


def test_a_digest_is_of_the_content_alone() -> None:
    assert digest_of((CONFIG, WEIGHTS)) == digest_of((WEIGHTS, CONFIG))
    assert digest_of((CONFIG, WEIGHTS)) == digest_of((replace(CONFIG, size=9), WEIGHTS))
    assert version("a@1").manifest.digest == version("b@7", labels={"x": "y"}).manifest.digest


def test_other_bytes_in_either_file_make_another_digest() -> None:
    digests = {
        digest_of((CONFIG, WEIGHTS)),
        digest_of((CONFIG, replace(WEIGHTS, sha256="c" * 64))),
        digest_of((replace(CONFIG, sha256="c" * 64), WEIGHTS)),
        digest_of((replace(CONFIG, sha256="b" * 64), replace(WEIGHTS, sha256="a" * 64))),
    }
    assert len(digests) == 4


@pytest.mark.parametrize("files", [(), (CONFIG,), (WEIGHTS,), (CONFIG, WEIGHTS, WEIGHTS)])
def test_half_an_adapter_has_no_digest(files: tuple[StoredFile, ...]) -> None:
    with pytest.raises(BadManifest, match="an adapter is"):
        digest_of(files)


@pytest.mark.parametrize(
    ("name", "sha256", "size"),
    [
        ("adapter_model.bin", "a" * 64, 1),
        ("../adapter_config.json", "a" * 64, 1),
        (CONFIG_FILE, "A" * 64, 1),
        (CONFIG_FILE, "a" * 63, 1),
        (CONFIG_FILE, "a" * 64, 0),
    ],
)
def test_what_is_no_file_of_an_adapter_is_refused(name: str, sha256: str, size: int) -> None:
    with pytest.raises(BadManifest):
        StoredFile(name, sha256, size)


@pytest.mark.parametrize(
    "labels",
    [
        ["a"],
        {"a": 1},
        {"a": None},
        {1: "a"},
        {"": "x"},
        {"a b": "x"},
        {"x": "y" * 257},
        {"x": "\n"},
        {f"l{i}": "" for i in range(33)},
    ],
)
def test_labels_that_could_not_be_listed_are_refused(labels: Any) -> None:
    with pytest.raises(BadManifest, match="label"):
        version("pirate@1", labels=labels)


@pytest.mark.parametrize("at", VersionState)
@pytest.mark.parametrize("to", VersionState)
def test_a_version_goes_where_the_table_says_and_nowhere_else(
    at: VersionState, to: VersionState
) -> None:
    here = version("pirate@1", state=at)
    if to in NEXT_STATES[at]:
        assert here.moved_to(to) == replace(here, state=to)
    else:
        with pytest.raises(BadMove, match=f"pirate@1 is {at} and cannot become {to}"):
            here.moved_to(to)


def test_every_state_is_in_the_table_and_retired_is_for_good() -> None:
    assert set(NEXT_STATES) == set(VersionState)
    assert not NEXT_STATES[VersionState.RETIRED]
