"""`penstock up`: files say what is served, and are followed when they change."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e.system import System, eventually, get_json

FILE = """\
penstock: v1
kind: deployment
name: chat
engine: simulated
model: m
update: {max_unavailable: 1}
"""
MORE = FILE + "---\n" + FILE.replace("chat", "more") + "max_queued: 7\n"


class Up(System):
    """One `penstock up` in the place of `serve`."""

    verb = "up"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of one deployment."""
    path = tmp_path / "penstock.yaml"
    path.write_text(FILE)
    return path


@pytest.fixture
def system(tmp_path: Path, file: Path) -> Iterator[System]:
    """What the file says, ready."""
    made = Up(tmp_path, "-f", str(file))
    try:
        made.wait_ready(within=60)
        yield made
        made.stop()
    finally:
        made.destroy()


def test_a_file_is_served_and_followed_and_one_that_is_broken_changes_nothing(
    system: System, file: Path
) -> None:
    answer = httpx.post(
        f"{system.base_url}/completions",
        json={"model": "chat", "prompt": "hello", "max_tokens": 2},
        timeout=30,
    )
    assert answer.status_code == 200, answer.text
    eventually(lambda: "Ctrl-C" in system.log.read_text(), within=30, what="the snippets")

    file.write_text(MORE)
    eventually(lambda: len(system.replicas()) == 2, within=60, what="a second deployment")
    models = eventually(
        lambda: {m["id"] for m in get_json(f"{system.base_url}/models")["data"]} >= {"more"},
        within=30,
        what="its route",
    )
    assert models

    file.write_text(MORE.replace("max_queued", "max_queud"))
    said = f"{file}:14: max_queud: no such field; near to it: max_queued"
    eventually(lambda: said in system.log.read_text(), within=30, what="the refusal")
    assert len(system.replicas()) == 2
    assert system.admin("deployments/more")["spec"]["max_queued"] == 7

    system.change("PATCH", "deployments/more/settings", {"max_queued": 9})
    file.write_text(MORE + "max_n: 2\n")
    said = " has set it to 9, here it is 7"
    eventually(lambda: said in system.log.read_text(), within=30, what="the refusal")
    assert system.admin("deployments/more")["spec"]["max_n"] != 2

    file.write_text(FILE)
    eventually(
        lambda: [each["name"] for each in system.admin("deployments")] == ["chat"],
        within=30,
        what="what is said no longer gone",
    )
    assert "Traceback" not in system.log.read_text()


def test_files_that_cannot_be_read_are_one_line_and_nothing_is_started(tmp_path: Path) -> None:
    broken = tmp_path / "penstock.yaml"
    broken.write_text("penstock: [")
    system = Up(tmp_path, "-f", str(broken))
    assert system.process.wait(timeout=60) == 1
    assert system.log.read_text().startswith(f"penstock up: error: {broken}:2: ")
    assert not system.processes()
