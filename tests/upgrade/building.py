"""Builds the state that today's is upgraded from, out of git, beside this checkout's own builds.

It has its own gateway, its own compiled extension and an environment of its own. That one sees
this checkout's packages, so that nothing is downloaded unless the locks differ.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BASE = (ROOT / "tests" / "upgrade" / "BASE").read_text().strip()
_TREES = ROOT / "build" / "upgrade"
_MADE = "penstock-venv.stamp"  # as setup/python_env.py names it


def built() -> Path:
    """The tree of `BASE`, ready to run; the first time takes minutes, later ones a second."""
    tree = _TREES / BASE
    if not (tree / "setup").is_dir():
        _take_out(tree)
    _environment(tree / ".venv")
    # Its own set-up does the rest, as it would for a user of then.
    subprocess.run([sys.executable, "setup/main.py", "serve"], cwd=tree, check=True)
    return tree


def _take_out(tree: Path) -> None:
    """Writes the files of `BASE`; under another name until all of them are there."""
    draft = tree.with_name(f"{tree.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    files = subprocess.run(["git", "archive", BASE], cwd=ROOT, capture_output=True, check=False)
    assert files.returncode == 0, (
        f"git has no {BASE}, which tests/upgrade/BASE names: fetch it, a shallow clone has it not\n"
        f"{files.stderr.decode()}"
    )
    subprocess.run(["tar", "-x", "-C", draft], input=files.stdout, check=True)
    draft.rename(tree)


def _environment(folder: Path) -> None:
    """An environment that finds this checkout's packages behind its own, and none of its code."""
    if (folder / _MADE).exists():
        return
    venv.create(folder, symlinks=True)
    ours = Path(sys.prefix)
    theirs = sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)})
    # A path that is named so is searched, but the editable install in it is not taken up.
    (Path(theirs) / "of-the-checkout.pth").write_text(sysconfig.get_path("purelib") + "\n")
    (folder / "bin" / "uv").symlink_to(ours / "bin" / "uv")
    for stamp in ours.glob("penstock-*.stamp"):
        if stamp.name not in (_MADE, "penstock-extension.stamp"):
            shutil.copyfile(stamp, folder / stamp.name)
    (folder / _MADE).write_text(str(folder))
