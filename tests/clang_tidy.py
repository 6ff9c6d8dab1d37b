"""clang-tidy over our own C++ (not the tests), as many rooms at a time as there are cores.

A room's files are read as one text, since the headers that they share take nine tenths of the time.
Where something is found, or two files have one name for different things, the files that it
is told of are read again apart from the others, down to single ones: what counts is what is told of
a file by itself. What includes pybind11 is left out: it is compiled only where Python builds the
extension.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
# CMake's source folder -> the build folder with its compile commands
ROOMS = {
    "gateway_cpp/src": "gateway_cpp/build/tidy",
    "replica/native": "replica/build/tidy",
    "evals/native": "build/evals-tidy",
}
NEEDS_PYTHON = ("module.cc", "python_writes.cc")
CLANG_TIDY = ("clang-tidy", "--quiet", "--extra-arg=-Wno-unknown-warning-option", "-p")
Batch = list[Path]


def configure() -> None:
    """Makes the compile commands and the generated headers."""
    for room in ("gateway_cpp", "replica"):
        _cmake(room, "--preset", "tidy")
        _cmake(room, "--build", "--preset", "tidy")
    _cmake(".", "-S", "evals/native", "-B", ROOMS["evals/native"], "-G", "Ninja")


def _cmake(folder: str, *arguments: str) -> None:
    command = ["cmake", *arguments]
    subprocess.run(command, cwd=ROOT / folder, check=True, stdout=subprocess.DEVNULL)


def batches(sources: str) -> list[Batch]:
    """The files of a room, all together."""
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard", f"{sources}/*.cc"]
    names = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    paths = sorted(ROOT / name for name in names.splitlines())
    wanted = [path for path in paths if path.name not in NEEDS_PYTHON]
    programs = [path for path in wanted if path.name.endswith("main.cc")]  # no two in one text
    return [[path for path in wanted if path not in programs[1:]], *([one] for one in programs[1:])]


class Room:
    """What is compiled with the commands of one build folder."""

    def __init__(self, build: Path) -> None:
        self._build = build
        commands = json.loads((build / "compile_commands.json").read_text())
        self._commands = {one["file"]: one for one in commands}

    def check(self, batch: Batch) -> str:
        """What clang-tidy has to say of these files; nothing where all is well."""
        said = self._ask(batch)
        if not said or len(batch) == 1:
            return said
        apart = [path for path in batch if f"{path}:" in said]
        if len(apart) in (0, len(batch)):
            apart = batch[: len(batch) // 2]
        return self.check([path for path in batch if path not in apart]) + self.check(apart)

    def _ask(self, batch: Batch) -> str:
        # Below the build folder, so that clang-tidy finds the .clang-tidy above it.
        with TemporaryDirectory(prefix="tidy-", dir=self._build) as folder:
            together = str(Path(folder, batch[0].name))
            text = (f'#include "{path}"  // NOLINT(bugprone-suspicious-include)' for path in batch)
            Path(together).write_text("\n".join(text) + "\n")
            words = [together if word == str(batch[0]) else word for word in self._words(batch)]
            database = [{"directory": str(self._build), "file": together, "arguments": words}]
            Path(folder, "compile_commands.json").write_text(json.dumps(database))
            asked = subprocess.run([*CLANG_TIDY, folder, together], capture_output=True, text=True)
        told = asked.stdout + asked.stderr
        return (
            "" if asked.returncode == 0 else told or f"clang-tidy ended with {asked.returncode}\n"
        )

    def _words(self, batch: Batch) -> list[str]:
        """The command of the first, with what those of the others define and include besides."""
        first, *others = (shlex.split(self._commands[str(path)]["command"]) for path in batch)
        flags: dict[str, list[str]] = {}
        for words in others:
            for word, following in zip(words, [*words[1:], ""], strict=True):
                if word == "-isystem":
                    flags[following] = [word, following]
                elif word.startswith(("-D", "-I")):
                    flags[word] = [word]
        more = (flag for name, flag in flags.items() if name not in first)
        return [*first, *(word for flag in more for word in flag)]


def main() -> int:
    """Prints what is wrong, with exit code 1; silent where nothing is."""
    configure()
    work: list[tuple[Room, Batch]] = []
    for sources, build in ROOMS.items():
        room = Room(ROOT / build)
        work += [(room, batch) for batch in batches(sources)]
    work.sort(key=lambda one: -sum(path.stat().st_size for path in one[1]))
    with ThreadPoolExecutor(os.cpu_count()) as cores:
        said = "".join(cores.map(lambda one: one[0].check(one[1]), work))
    sys.stdout.write(said)
    return 1 if said else 0


if __name__ == "__main__":
    raise SystemExit(main())
