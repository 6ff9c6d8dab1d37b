"""Files that `penstock up` follows: applied when they change, and what stands goes on else."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from penstock.control.admin.apply.models import PlanModel
from penstock.control.errors import BadDocuments, Code, Fault, PenstockError, Unavailable
from penstock.control.serving.file_session import FollowedFiles
from penstock.control.serving.options import Files

FILE = "penstock: v1\nkind: deployment\nname: {name}\n"


class Admin:
    """Takes documents, or refuses them as it is told."""

    def __init__(self) -> None:
        self.taken: list[list[str]] = []
        self.refusal: PenstockError | None = None

    async def apply(
        self, documents: Sequence[Mapping[str, Any]], *, set_name: str, prune: bool, **_: Any
    ) -> PlanModel:
        if self.refusal:
            raise self.refusal
        assert (set_name, prune) == ("up", True)
        self.taken.append([each["name"] for each in documents])
        return PlanModel(
            set_name=set_name, applied=True, created=1, changed=0, deleted=0, same=0, steps=[]
        )


class Followed:
    """Files in a folder, those who take them, and what was told."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "penstock.yaml"
        self.times = 0
        self.write("a")
        self.admin = Admin()
        self.told: list[str] = []
        self.files = FollowedFiles(Files((str(folder),)), self.admin, self.told.append)

    def write(self, name: str, text: str = FILE) -> None:
        """Another text, of another time."""
        self.file.write_text(text.format(name=name))
        self.times += 1
        os.utime(self.file, (self.times, self.times))


@pytest.fixture
def followed(tmp_path: Path) -> Followed:
    return Followed(tmp_path)


async def test_a_file_is_applied_once_for_each_change(followed: Followed) -> None:
    await followed.files.apply()
    await followed.files.look()
    followed.write("b")
    await followed.files.look()
    await followed.files.look()
    assert followed.admin.taken == [["a"], ["b"]]
    assert followed.told[0].endswith(": 1 created, 0 changed, 0 deleted, 0 the same")


async def test_what_is_refused_is_told_once_with_its_line(followed: Followed) -> None:
    fault = Fault(0, ("name",), "somebody else has it")
    followed.admin.refusal = BadDocuments([fault], Code.CONFLICT)
    for broken, words in (
        (FILE, f"{followed.file}:3: name: somebody else has it"),
        ("a: [", f"{followed.file}:2: "),
    ):
        followed.write("c", broken)
        await followed.files.look()
        await followed.files.look()
        assert words in followed.told[-1]
        assert followed.told[-1].startswith("refused, what stands goes on: ")
    assert len(followed.told) == 2


async def test_a_head_that_is_away_is_asked_again(followed: Followed) -> None:
    followed.write("d")
    followed.admin.refusal = Unavailable("it starts")
    await followed.files.look()
    followed.admin.refusal = None
    await followed.files.look()
    assert followed.admin.taken == [["d"]]


async def test_a_file_that_is_gone_is_told_and_taken_again_when_it_is_back(
    followed: Followed,
) -> None:
    followed.file.unlink()
    await followed.files.look()
    assert "no document in" in followed.told[0]
    followed.write("e")
    await followed.files.look()
    assert followed.admin.taken == [["e"]]
