"""A token that comes after the agent is taken up; what stands in its way is said."""

from __future__ import annotations

from pathlib import Path

from penstock.control.node_agent.token_watch import TokenWatch


class Watched:
    """A watch over a file, and how often it took up what it found there."""

    def __init__(self, path: Path, in_use: str = "") -> None:
        self.taken = 0
        self.path = path
        self.trouble = ""
        self.watch = TokenWatch(path, in_use, self._take, lambda: self.trouble)

    def _take(self) -> None:
        self.taken += 1

    def put(self, text: str, mode: int = 0o600) -> None:
        self.path.write_text(text)
        self.path.chmod(mode)


def test_without_a_token_it_says_where_one_is_to_be_put(tmp_path: Path) -> None:
    watched = Watched(tmp_path / "cluster.token")
    assert f"{watched.path} is not there" in watched.watch.refused()
    assert watched.taken == 0


def test_a_token_that_came_since_is_taken_up(tmp_path: Path) -> None:
    watched = Watched(tmp_path / "cluster.token")
    watched.put("abc\n")
    assert "taken up" in watched.watch.refused()
    assert watched.taken == 1


def test_a_token_that_was_exchanged_is_taken_up(tmp_path: Path) -> None:
    watched = Watched(tmp_path / "cluster.token", in_use="old")
    watched.put("old")
    assert "is not the head's" in watched.watch.refused()
    watched.put("new")
    watched.watch.refused()
    assert watched.taken == 1


def test_a_token_that_others_can_read_is_left_until_it_is_private(tmp_path: Path) -> None:
    watched = Watched(tmp_path / "cluster.token")
    watched.put("abc", 0o644)
    assert "chmod 600" in watched.watch.refused()
    assert watched.taken == 0
    watched.put("abc")
    watched.watch.refused()
    assert watched.taken == 1


def test_an_agent_in_trouble_takes_nothing_up_and_says_why(tmp_path: Path) -> None:
    watched = Watched(tmp_path / "cluster.token", in_use="old")
    watched.put("new")
    watched.trouble = "the data directory is gone"
    assert watched.watch.refused() == "the data directory is gone"
    assert watched.taken == 0
