"""The system packages that each purpose needs, found missing with dpkg and installed with apt."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

import apt
from console import SetupError, say


@dataclass(frozen=True)
class Package:
    """One thing that must be installed; the first name that the distribution has is taken."""

    names: tuple[str, ...]
    why: str


BUILD = (
    Package(("g++",), "compiles the gateway and the replica's extension"),
    Package(("cmake",), "builds them"),
    Package(("ninja-build",), "builds them"),
    Package(("pkg-config",), "finds what gRPC needs"),
    Package(("libboost1.83-dev", "libboost1.81-dev"), "HTTP and coroutines in the gateway"),
    Package(("libgrpc++-dev",), "gateway and replica talk gRPC"),
    Package(("libnghttp2-dev",), "gRPC on the gateway's own threads"),
    Package(("libssl-dev",), "TLS on the gateway's port, fingerprints of requests"),
    Package(("libprotobuf-dev",), "their messages"),
    Package(("protobuf-compiler",), "compiles the messages"),
    Package(("protobuf-compiler-grpc",), "compiles the services"),
    Package(("libsimdjson-dev",), "reads request bodies"),
    Package(("libcurl4-openssl-dev",), "sends traces to a collector"),
    Package(("zlib1g-dev",), "unpacks request bodies that come in gzip"),
    Package(("libjemalloc-dev",), "memory of the gateway's threads"),
)
ENGINE = (Package(("libnuma1", "libnuma1t64"), "vLLM's CPU build loads it"),)
TEST = (
    Package(("libgtest-dev",), "C++ tests"),
    Package(("libgmock-dev",), "C++ tests"),
    Package(("clang-format",), "C++ format"),
    Package(("clang-tidy",), "C++ lint"),
    Package(("ccache",), "builds again what has not changed, at once"),
    Package(("clang-16",), "compiles what sanitizers and fuzzers look at, in half of GCC's time"),
    Package(("prometheus",), "Prometheus, which watches what tests start, and promtool"),
    Package(("libclang-rt-16-dev",), "their runtime"),
    Package(("llvm-16",), "tells where what they found is, of a large program in a moment"),
)
CLIENTS = (Package(("chromium", "chromium-browser"), "the browser that a page is tried in"),)
BENCH = (Package(("nginx-light", "nginx"), "what the gateway is measured against"),)


def python_packages() -> tuple[Package, ...]:
    """What Debian splits off its own Python: headers and the venv module, if they are not there."""
    wanted = []
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        name = f"libpython{sys.version_info.major}.{sys.version_info.minor}-dev"
        wanted.append(Package((name, "python3-dev"), "headers for the replica's extension"))
    try:
        import ensurepip  # noqa: F401
    except ImportError:
        name = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
        wanted.append(Package((name, "python3-venv"), "makes .venv"))
    return tuple(wanted)


def is_installed(name: str) -> bool:
    """Whether dpkg has the package, unpacked and configured."""
    query = subprocess.run(
        ["dpkg-query", "-W", "-f=${Status}", name], capture_output=True, text=True, check=False
    )
    return query.stdout.endswith("install ok installed")


def missing(packages: Iterable[Package]) -> list[Package]:
    """The packages of which no name is installed."""
    return [package for package in packages if not any(map(is_installed, package.names))]


def available(package: Package, there: Collection[str]) -> str:
    """The first of the package's names that is `there` to install. Raises `SetupError`."""
    for name in package.names:
        if name in there:
            return name
    raise SetupError(
        f"no package {' or '.join(package.names)} ({package.why}) for this distribution.\n"
        "  Penstock is built on Debian 12 and Ubuntu 24.04; elsewhere install its like by hand."
    )


def ensure(packages: Iterable[Package], logs: Path, user: int) -> None:
    """Installs what is missing, says which and why, and uses sudo when the user is not root.

    Raises `SetupError`.
    """
    packages = tuple(packages)
    if shutil.which("dpkg-query") is None or shutil.which("apt-get") is None:
        listed = ", ".join(f"{p.names[0]} ({p.why})" for p in packages)
        say(f"no apt on this system: taking for granted that these are installed: {listed}")
        return
    if wanted := missing(packages):
        say("system packages that are missing:")
        for package in wanted:
            print(f"    {' or '.join(package.names)}: {package.why}", flush=True)
        if apt.root_prefix(os.environ, user) is None:
            raise SetupError(by_hand(wanted))
        install(wanted, logs, user)


def by_hand(wanted: list[Package]) -> str:
    """What an administrator has to run where set-up cannot: names that this system has."""
    missing_here = "system packages are missing and sudo is not there.\n"
    there = apt.candidates(name for package in wanted for name in package.names)
    if not there:
        return missing_here + (
            "  This system's package lists are empty too: have an administrator run\n"
            "  `apt-get update`, then run this again for the names of the packages."
        )
    names = " ".join(available(package, there) for package in wanted)
    return missing_here + f"  Have an administrator run: apt-get install {names}"


def install(wanted: list[Package], logs: Path, user: int) -> None:
    """Refreshes apt's lists and installs the packages. Raises `SetupError`."""
    apt.run("refreshing the package lists", ["update"], logs / "apt-update.log", user)
    there = apt.candidates(name for package in wanted for name in package.names)
    names = [available(package, there) for package in wanted]
    apt.run(
        f"installing {len(names)} system packages",
        ["install", "-y", "--no-install-recommends", *names],
        logs / "apt-install.log",
        user,
    )
