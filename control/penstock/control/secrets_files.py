"""Secrets in files: made once with mode 0600, read whole, never in a command line or a log.

A secret that others than its owner can read is refused: it is one no longer.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.control.errors import SecretUnusable

PRIVATE = 0o600
PRIVATE_DIR = 0o700
LONGEST = 64 << 10  # bytes; a file larger than that holds something else


def made_or_read(path: Path, new: Callable[[], str]) -> str:
    """The secret in this file, which is made from `new` where there is none.

    Raises `SecretUnusable`. Two processes that make it at once get the same secret.
    """
    if not path.exists():
        _make(path, new())
    return read_secret(path)


def write_secret(path: Path, secret: str) -> None:
    """Puts the secret in the place of what the file held, whole. Raises `SecretUnusable`."""
    with _explained(path, "written"):
        scratch = _scratch(path, secret)
        scratch.replace(path)


def make_secrets_dir(path: Path) -> None:
    """Makes a directory for secrets that only its owner can look into; one that is there stays as
    it is. Raises `SecretUnusable`."""
    with _explained(path, "made"):
        if not path.is_dir():
            path.mkdir(mode=PRIVATE_DIR, parents=True)
            path.chmod(PRIVATE_DIR)  # whatever the umask took away


def read_secret(path: Path) -> str:
    """The file's text without the whitespace around it. Raises `SecretUnusable`."""
    text = read_private(path)
    secret = text.decode("ascii", "replace").strip()
    if not secret or not secret.isprintable() or not secret.isascii() or len(text) > LONGEST:
        raise SecretUnusable(f"{path} holds no secret: one line of printable ASCII is expected")
    return secret


def read_private(path: Path) -> bytes:
    """What a file begins with that its owner alone can read. Raises `SecretUnusable`."""
    with _explained(path, "read"), path.open("rb") as file:
        _check_private(path, os.fstat(file.fileno()))
        return file.read(LONGEST + 1)


def _make(path: Path, secret: str) -> None:
    with _explained(path, "written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = _scratch(path, secret)
        try:
            os.link(scratch, path)  # fails where another process was faster: then its secret counts
        except FileExistsError:
            pass
        finally:
            scratch.unlink()


def _scratch(path: Path, secret: str) -> Path:
    scratch = path.with_name(f"{path.name}.{os.getpid()}")
    scratch.unlink(missing_ok=True)
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, PRIVATE)
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{secret}\n")
    return scratch


def _check_private(path: Path, facts: os.stat_result) -> None:
    if not stat.S_ISREG(facts.st_mode):
        raise SecretUnusable(f"{path} is not a file: name the file that holds the secret")
    if facts.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        mode = stat.S_IMODE(facts.st_mode)
        raise SecretUnusable(
            f"{path} has mode {mode:04o}, so that others than its owner can use it: "
            f"make the secret anew, or `chmod 600 {path}` if nobody has read it"
        )


@contextmanager
def _explained(path: Path, done: str) -> Iterator[None]:
    """Turns the system's errors into ours: which file, and what could not be done."""
    try:
        yield
    except OSError as error:
        raise SecretUnusable(
            f"{path} cannot be {done}: {error.strerror}; check the path and its rights"
        ) from error
