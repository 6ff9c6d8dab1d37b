"""Links between the project's documents lead somewhere."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
OTHER = re.compile(r"[a-z]+:")  # https:, mailto:


def documents() -> list[Path]:
    """Every Markdown file, new ones included."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\n")
    return [ROOT / name for name in listed if name and (ROOT / name).is_file()]


def anchors(page: Path) -> set[str]:
    """What a link may name behind `#`: the headings, as they are rendered."""
    titles = re.findall(r"^#+ (.*)$", FENCED.sub("", page.read_text()), re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", title.lower()).strip() for title in titles)
    return {title.replace(" ", "-") for title in plain}


def broken(page: Path) -> Iterator[str]:
    """The links of one document that lead nowhere."""
    for target in LINK.findall(FENCED.sub("", page.read_text())):
        if OTHER.match(target):
            continue
        name, _, anchor = target.partition("#")
        other = page.parent / name if name else page
        if not other.exists() or (anchor and anchor not in anchors(other)):
            yield target


def test_every_link_leads_somewhere() -> None:
    lost = {page.relative_to(ROOT): list(broken(page)) for page in documents()}
    assert not {page: targets for page, targets in lost.items() if targets}


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A `b`: c\n[well](#a-b-c) [off](#d) [gone](other.md) [far](https://x.y/z)\n")
    assert list(broken(page)) == ["#d", "other.md"]
