"""The clients that the system is tried with, apart from what the system itself is made of.

Their pins clash with vLLM's, so the Python ones have an environment of their own, `.venv-clients`.
It brings a Node, too: the current SDKs ask for a newer one than the distributions have. The Node
packages lie beside their tests. What has been done is known by a stamp in each of the two folders,
written last: what was interrupted is made anew.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import venv
from collections.abc import Mapping
from pathlib import Path

import installer
import locked
from console import run_step, say
from places import CLIENTS_VENV, LOCKS, NODE_CLIENTS, ROOT

LOCK = LOCKS / "clients.txt"
NODE_LOCK = NODE_CLIENTS / "package-lock.json"
PYTHON = CLIENTS_VENV / "bin" / "python"
STAMP = "penstock-clients.stamp"


def ensure(logs: Path) -> None:
    """Brings both folders to their locks. Raises `SetupError`."""
    python_clients(logs)
    node_clients(logs)


def python_clients(logs: Path) -> None:
    """Makes `.venv-clients` of its lock, unless it is there for this folder and this Python."""
    wanted = digest(locked.pins(LOCK.read_text()), str(sys.implementation.cache_tag))
    if is_made(CLIENTS_VENV, wanted):
        return
    say(f"making {CLIENTS_VENV.name} with Python {sys.version.split()[0]}")
    venv.create(CLIENTS_VENV, clear=True)
    run_step(
        "installing the Python clients",
        [*installer.uv("install", PYTHON), "--no-deps", "--require-hashes", "-r", str(LOCK)],
        logs / "clients-python.log",
        hint="Is the network there?",
        env=installer.environment(),
    )
    (CLIENTS_VENV / STAMP).write_text(wanted)


def node_clients(logs: Path) -> None:
    """Installs the Node packages of their lock, each checked against its hash; runs no scripts."""
    packages = NODE_CLIENTS / "node_modules"
    wanted = digest(NODE_LOCK.read_text())
    if is_made(packages, wanted):
        return
    shutil.rmtree(packages, ignore_errors=True)
    run_step(
        "installing the Node clients",
        [str(PYTHON.with_name("npm")), "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
        logs / "clients-node.log",
        hint="Is the network there, and does npm's configuration name a registry that answers?",
        env=node_environment(installer.environment(), installer.SYSTEM_CERTIFICATES),
        cwd=NODE_CLIENTS,
    )
    (packages / STAMP).write_text(wanted)


def node_environment(environ: Mapping[str, str], system: Path) -> dict[str, str]:
    """`environ` for npm: its own Node first, and the certificates that pip trusts.

    Node brings a list of its own, as pip does.
    """
    env = {**environ, "PATH": f"{PYTHON.parent}{os.pathsep}{environ.get('PATH', os.defpath)}"}
    trusted = env.get("SSL_CERT_FILE") or (str(system) if system.exists() else "")
    if trusted:
        env.setdefault("NODE_EXTRA_CA_CERTS", trusted)
    return env


def is_made(folder: Path, wanted: str) -> bool:
    """Whether a folder was finished for what is `wanted`."""
    stamp = folder / STAMP
    return stamp.is_file() and stamp.read_text() == wanted


def digest(*parts: str) -> str:
    """What a finished folder is known by: what it was made of, and where."""
    return hashlib.sha256("\n".join([*parts, str(ROOT)]).encode()).hexdigest()
