"""The steps that make this machine ready for one purpose, and their command line.

Every step looks first whether it has been done, so a second run costs about a second.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import builds
import clients
import python_env
import system_packages
import vllm_build
from console import SetupError, beside, say
from places import LOGS, ROOT


def prepare(purpose: str, engine: str) -> None:
    """All steps of set-up for a purpose. Raises `SetupError`."""
    real_engine = engine == "vllm"
    system = [*system_packages.BUILD, *system_packages.python_packages()]
    locks = [vllm_build.choose(os.environ, python_env.installed_build()) if real_engine else "core"]
    if real_engine:
        system += system_packages.ENGINE
    if purpose == "test":
        system += [*system_packages.TEST, *system_packages.BENCH]
        locks.append("dev")
    if purpose == "bench":
        system += system_packages.BENCH
    if purpose == "clients":
        system += system_packages.CLIENTS
    system_packages.ensure(system, LOGS, os.geteuid())
    builds.forget_foreign(ROOT)
    with beside(partial(build_programs, purpose)):
        python_env.ensure(tuple(locks), LOGS)
        builds.extension(LOGS, strict=purpose == "test")
    if purpose == "clients":
        clients.ensure(LOGS)


def build_programs(purpose: str) -> None:
    """What is compiled without any Python package."""
    builds.gateway("release", LOGS, strict=purpose == "test")
    if purpose in ("test", "bench"):
        builds.bench_programs(LOGS)


@contextmanager
def alone() -> Iterator[None]:
    """Waits until no other set-up works in this checkout: two would install over each other."""
    LOGS.mkdir(parents=True, exist_ok=True)
    with (LOGS / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another set-up works here: waiting for its end")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main() -> int:
    """Runs the command line; errors are one line and exit code 1."""
    parser = argparse.ArgumentParser(description="Makes this machine ready for one purpose.")
    parser.add_argument("purpose", choices=["serve", "test", "bench", "clients"])
    parser.add_argument(
        "--engine",
        default="vllm",
        help="any but vllm needs neither torch nor vLLM",
    )
    args = parser.parse_args()
    try:
        with alone():
            prepare(args.purpose, args.engine)
    except SetupError as error:
        print(f"penstock setup: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\npenstock setup: stopped; the next run goes on from here", file=sys.stderr)
        return 130
    return 0
