"""uv, as set-up calls it: with the indexes, certificates and proxies that pip is configured with.

uv reads none of pip's configuration, so it is passed on: whoever can install with pip can install
with this.
"""

from __future__ import annotations

import ast
import os
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from console import run_step
from places import LOCKS, PYTHON, VENV

EXTRA_INDEX = "PENSTOCK_EXTRA_INDEX"  # one more index, such as PyTorch's own CPU wheels
SYSTEM_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
OPTIONS = {
    "index-url": "--default-index",
    "extra-index-url": "--index",
    "find-links": "--find-links",
    "trusted-host": "--allow-insecure-host",
}

Settings = list[tuple[str, str]]


def get(logs: Path) -> None:
    """Installs the locked uv into .venv with pip. Raises `SetupError`."""
    run_step(
        "getting the installer (uv)",
        [
            *(str(PYTHON), "-m", "pip", "install", "-q", "--require-hashes"),
            *("-r", str(LOCKS / "uv.txt")),
        ],
        logs / "uv.log",
        hint="Does `pip install uv` work?",
        env=environment(),
    )


def uv(verb: str, python: Path = PYTHON) -> list[str]:
    """The start of a uv pip command line for an environment's Python that sees what pip sees."""
    return [
        *(str(VENV / "bin" / "uv"), "pip", verb, "--python", str(python)),
        *("--index-strategy", "unsafe-best-match"),
        *sources(),
    ]


def sources() -> list[str]:
    """pip's indexes and link folders as uv's options, and `EXTRA_INDEX`."""
    options: list[str] = []
    for name, value in dict.fromkeys(pip_settings()):
        for item in value.split() if name in OPTIONS else ():
            options += [OPTIONS[name], item]
    if extra := os.environ.get(EXTRA_INDEX):
        options += ["--index", extra]
    return options


def environment() -> dict[str, str]:
    """The environment for pip and uv on this machine."""
    return with_certificates(os.environ, dict(pip_settings()), SYSTEM_CERTIFICATES)


def with_certificates(
    environ: Mapping[str, str], pip: Mapping[str, str], system: Path
) -> dict[str, str]:
    """`environ`, and how pip and uv reach the network behind a proxy that opens every connection.

    Such a proxy's certificate is in the system's store, while both bring a list of their own. What
    the user or pip's configuration names goes first.
    """
    env = dict(environ)
    if cert := pip.get("cert"):
        env.setdefault("SSL_CERT_FILE", cert)
    elif own := env.get("SSL_CERT_FILE"):
        env["PIP_CERT"] = own
    elif system.exists():
        env["PIP_CERT"] = str(system)
        env.setdefault("UV_SYSTEM_CERTS", "1")
    if proxy := pip.get("proxy"):
        for name in ("HTTP_PROXY", "HTTPS_PROXY"):
            if not (env.get(name) or env.get(name.lower())):
                env[name] = proxy
    return env


@cache
def pip_settings() -> Settings:
    """pip's configuration, files and environment, as pairs of name and value; asked once."""
    listed = subprocess.run(
        [str(PYTHON), "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    ).stdout
    return list(parse_settings(listed))


def parse_settings(listed: str) -> Iterator[tuple[str, str]]:
    """The pairs in what `pip config list` prints: `global.cert='/a/b'`, `:env:.find-links='c'`."""
    for line in listed.splitlines():
        key, equals, value = line.partition("=")
        if equals and value[:1] in "'\"":
            yield key.rpartition(".")[2], str(ast.literal_eval(value))
