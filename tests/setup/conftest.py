"""Machines for set-up's scripts."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.fakes.fake_machine import FakeMachine, make


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    """One on which nothing was ever set up."""
    return make(tmp_path / "machine")


@pytest.fixture(scope="session")
def set_up_once(tmp_path_factory: pytest.TempPathFactory) -> FakeMachine:
    """One on which `core` was installed; nobody changes it."""
    first = make(tmp_path_factory.mktemp("once") / "machine")
    done = first.python(INSTALL_CORE)
    assert done.returncode == 0, done.stderr
    return first


@pytest.fixture
def set_up(set_up_once: FakeMachine, tmp_path: Path) -> FakeMachine:
    """A copy of it at another place."""
    shutil.copytree(set_up_once.folder, tmp_path / "copy", symlinks=True)
    copy = FakeMachine(tmp_path / "copy")
    copy.say("notes")
    return copy


INSTALL_CORE = "import python_env, places; python_env.ensure(('core',), places.LOGS)"
