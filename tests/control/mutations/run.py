"""Takes each mend out of a copy of the control plane and runs the histories: they must fail.

    .venv/bin/python -m tests.control.mutations.run [part of what a mend says]

A test of the tests, by hand: it takes some minutes. Exit code 1 where a history misses nothing, or
where a mend's text is no longer found.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.control.mutations.mends import MENDS, Mend

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = "control/penstock/control"
HISTORIES = [
    "tests/control/test_cluster_histories.py",
    "tests/control/test_cluster_stories.py",
    "tests/control/test_judged_stories.py",
]
OVERLAY = "tests.control.mutations.overlay"
PROFILE = "mutations"


def copy_without(mend: Mend, folder: Path) -> None:
    """The control plane in `folder`, without the mend. Raises ValueError where it is not found."""
    shutil.copytree(ROOT / PACKAGE, folder / "control")
    for edit in mend.without:
        file = folder / "control" / edit.file
        text = file.read_text()
        if text.count(edit.old) != 1:
            raise ValueError(f"{edit.file} has not exactly one {edit.old!r}")
        file.write_text(text.replace(edit.old, edit.new))


def failed_histories(folder: Path) -> list[str]:
    """The tests that fail with the package of this folder."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", OVERLAY]
    done = subprocess.run(
        [*command, "--tb=line", f"--hypothesis-profile={PROFILE}", *HISTORIES],
        cwd=ROOT,
        env={
            **os.environ,
            "CONTROL_OVERLAY": str(folder),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1):
        raise ValueError(f"the histories did not run: {done.stdout}{done.stderr}")
    return re.findall(r"^FAILED \S+::(\S+)", done.stdout, re.MULTILINE)


def judge(mend: Mend) -> str:
    """One line: what missed the mend, or why nothing did."""
    with tempfile.TemporaryDirectory() as name:
        try:
            copy_without(mend, Path(name))
            found = failed_histories(Path(name))
        except ValueError as error:
            return f"BROKEN  {mend.says}: {error}"
    return f"found   {mend.says}: {', '.join(found)}" if found else f"MISSED  {mend.says}"


def main() -> int:
    """0: each mend is missed by some history when it is gone."""
    wanted = " ".join(sys.argv[1:])
    verdicts = []
    for mend in MENDS:
        if wanted in mend.says:
            verdicts.append(judge(mend))
            print(verdicts[-1], flush=True)  # noqa: T201
    return 0 if verdicts and all(v.startswith("found") for v in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
