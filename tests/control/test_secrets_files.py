"""Secrets in files: private from their first byte, refused where others can read them."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from penstock.control.errors import SecretUnusable
from penstock.control.secrets_files import (
    made_or_read,
    make_secrets_dir,
    read_secret,
    write_secret,
)


def test_a_secret_is_made_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "a.token"
    assert made_or_read(path, lambda: "first") == "first"
    assert made_or_read(path, lambda: "second") == "first"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["a.token"]


def test_a_written_secret_takes_the_place_of_the_last_one(tmp_path: Path) -> None:
    path = tmp_path / "a.token"
    write_secret(path, "first")
    write_secret(path, "second")
    assert read_secret(path) == "second"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_whitespace_around_a_secret_is_not_part_of_it(tmp_path: Path) -> None:
    path = tmp_path / "a.token"
    path.write_text("\n  word \r\n")
    path.chmod(0o400)
    assert read_secret(path) == "word"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o666])
def test_a_file_that_others_can_use_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "a.token"
    path.write_text("word")
    path.chmod(mode)
    with pytest.raises(SecretUnusable, match=f"has mode {mode:04o}.*chmod 600") as caught:
        read_secret(path)
    assert "word" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b" \n", b"two\nlines", b"\xff\xfe", b"x" * 70_000])
def test_a_file_without_one_printable_line_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.token"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(SecretUnusable, match="holds no secret"):
        read_secret(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SecretUnusable, match=r"nothing\.token cannot be read: No such file"):
        read_secret(tmp_path / "nothing.token")
    with pytest.raises(SecretUnusable, match=r"is not a file|Is a directory"):
        read_secret(tmp_path)


def test_a_secret_that_appears_meanwhile_counts_instead_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "a.token"

    def another_process_is_faster() -> str:
        write_secret(path, "theirs")
        return "ours"

    assert made_or_read(path, another_process_is_faster) == "theirs"


def test_a_directory_for_secrets_is_made_private_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "data" / "secrets"
    make_secrets_dir(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    path.chmod(0o750)
    make_secrets_dir(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o750
    (tmp_path / "file").write_text("")
    with pytest.raises(SecretUnusable, match="cannot be made"):
        make_secrets_dir(tmp_path / "file" / "secrets")
