"""Files that nothing can be made of: each is refused with its line, and none harms who reads it."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from penstock.control import spec_files
from penstock.control.errors import InvalidInput

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9)
)


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("a: b\nc: " + "[" * 100_000, "f:2: nothing that Penstock takes is as deep as this"),
        (BOMB, r"f:\d: a document has 100,000 fields at most"),
        ("a: b\nreplicas: 1e999", "f:2: 1e999 is no number that JSON can say"),
        ("a: b\nreplicas: !!float .nan", "f:2: .nan is no number that JSON can say"),
        ("a: b\nreplicas: !!int foo", "f:2: foo is no number that JSON can say"),
        ("a: b\nreplicas: " + "9" * 5000, "f:2: 9{20} is no number that JSON can say"),
        ("a: b\nc: !!timestamp 2020-01-01", "f:2: .*timestamp"),
        ("a: b\nc: !!binary aGk=", "f:2: .*binary"),
        ("a: b\nc: !!set {d, e}", "f:2: .*set"),
    ],
    ids=["deep", "bomb", "infinite", "nan", "no-int", "long-int", "date", "bytes", "set"],
)
def test_what_json_cannot_say_is_refused_with_its_line(text: str, refused: str) -> None:
    with pytest.raises(InvalidInput, match=f"^{refused}"):
        list(spec_files.parsed(text, "f"))


def test_what_is_no_text_is_refused_by_the_name_of_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.yaml").write_text("a: b")
    (tmp_path / "b.yaml").write_bytes(b"a: \xff")
    with pytest.raises(InvalidInput, match=r"b\.yaml is no text in UTF-8"):
        spec_files.read([str(tmp_path)])
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a: \xff")))
    with pytest.raises(InvalidInput, match="stdin is no text in UTF-8"):
        spec_files.read(["-"])


def test_what_never_ends_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spec_files, "MOST_BYTES", 1000)
    with pytest.raises(InvalidInput, match="/dev/zero is longer than 1000 bytes"):
        spec_files.read(["/dev/zero"])
