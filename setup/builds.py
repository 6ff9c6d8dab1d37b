"""Builds what is C++: the gateway, the replica's extension, and the benchmark's programs."""

from __future__ import annotations

import hashlib
import re
import shutil
from pathlib import Path

from console import run_step, say
from installer import environment, uv
from places import PYTHON, ROOT, VENV

HINT = (
    "A compiler error in unchanged sources means a missing or foreign package: see setup/README.md."
)
BUILD_TREES = ("build/*", "gateway_cpp/build/*", "replica/build/*")
EXTENSION_SOURCES = (
    "pyproject.toml",
    "replica/CMakeLists.txt",
    "proto/CMakeLists.txt",
    "replica/native/**/*",
    "proto/**/*.proto",
)


def forget_foreign(root: Path) -> None:
    """Removes build trees that were configured for another folder: a copied checkout has them.

    They name their sources by path, so building in one builds the original's.
    """
    for pattern in BUILD_TREES:
        for cache in sorted(root.glob(f"{pattern}/CMakeCache.txt")):
            home = re.search(
                r"^CMAKE_CACHEFILE_DIR:INTERNAL=(.*)$", cache.read_text(), re.MULTILINE
            )
            if home is not None and Path(home.group(1)).resolve() != cache.parent.resolve():
                say(f"{cache.parent.relative_to(root)} was built for {home.group(1)}: removing it")
                shutil.rmtree(cache.parent)


def is_older(made: Path, source: Path) -> bool:
    """Whether it is not there or was made before the source was last written, as by a pull."""
    return not made.exists() or made.stat().st_mtime < source.stat().st_mtime


def gateway(preset: str, logs: Path, *, strict: bool) -> None:
    """Configures and builds gateway_cpp with a preset; a built tree costs a moment. `strict`: what
    the compiler warns of is an error, as long as the tree stands."""
    folder = ROOT / "gateway_cpp"
    if is_older(folder / "build" / preset / "build.ninja", folder / "CMakePresets.json"):
        run_step(
            f"configuring the gateway ({preset})",
            ["cmake", "--preset", preset, f"-DPENSTOCK_WERROR={'ON' if strict else 'OFF'}"],
            logs / f"gateway-{preset}-configure.log",
            hint=HINT,
            cwd=folder,
        )
    # Its messages first: the extension, begun meanwhile, takes them from the compiler's cache.
    for what, targets in (("messages", ["--target", "penstock_proto"]), ("gateway", [])):
        run_step(
            f"building the {what} ({preset})",
            ["cmake", "--build", "--preset", preset, *targets],
            logs / f"{what}-{preset}.log",
            hint=HINT,
            cwd=folder,
        )


def extension(logs: Path, *, strict: bool) -> None:
    """Installs the project into .venv, editable, with the replica's extension compiled; `strict` as
    for the gateway."""
    stamp = VENV / "penstock-extension.stamp"
    wanted = sources_digest()
    if stamp.exists() and stamp.read_text() == wanted:
        return
    run_step(
        "building the replica's extension",
        [
            *uv("install"),
            "--no-deps",
            "--no-build-isolation",
            f"-Ccmake.define.PENSTOCK_WERROR={'ON' if strict else 'OFF'}",
            "-e",
            str(ROOT),
        ],
        logs / "extension.log",
        hint=HINT,
        env={"CXX": "c++", **environment()},  # as CMake calls it, not as this Python's maker did
    )
    stamp.write_text(wanted)


def bench_programs(logs: Path) -> None:
    """Builds the load client and the event source of evals/native."""
    build = ROOT / "build" / "evals"
    run_step(
        "configuring the benchmark's programs",
        [
            "cmake",
            "-S",
            str(ROOT / "evals" / "native"),
            "-B",
            str(build),
            "-G",
            "Ninja",
            "-DCMAKE_BUILD_TYPE=Release",
            "-DCMAKE_UNITY_BUILD=ON",
        ],
        logs / "evals-configure.log",
        hint=HINT,
    )
    run_step(
        "building the benchmark's programs",
        ["cmake", "--build", str(build)],
        logs / "evals.log",
        hint=HINT,
    )


def sources_digest() -> str:
    """Changes when anything changes that the extension is made from, and with the folder."""
    total = hashlib.sha256(f"{PYTHON.resolve().as_posix()} {ROOT.as_posix()}".encode())
    # An editable install finds modules by a list that it makes of where they lie.
    for path in sorted(ROOT.glob("*/penstock/**/*.py")):
        total.update(path.relative_to(ROOT).as_posix().encode())
    for pattern in EXTENSION_SOURCES:
        for path in sorted(ROOT.glob(pattern)):
            if path.is_file():
                total.update(path.relative_to(ROOT).as_posix().encode())
                total.update(path.read_bytes())
    return total.hexdigest()
