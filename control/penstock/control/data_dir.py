"""The head's directory: who owns it, and what lies where in it, and in a node agent's."""

from __future__ import annotations

import fcntl
import json
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from penstock.control.errors import CannotStart, Code

log = logging.getLogger(__name__)

COMPARER = "comparer"  # as what it announces itself
LEAST_FREE = 1 << 20  # bytes; a disk with less takes no transaction for long


@contextmanager
def owned(data_dir: Path) -> Iterator[None]:
    """Owns the directory until the block, or the process, ends; raises `data-dir-in-use`.

    One that a head has owned before is owned all the same where nothing can be written to it.
    """
    path = head_pid_path(data_dir)
    with _writing(data_dir):
        data_dir.mkdir(parents=True, exist_ok=True)
        file = _opened(path)
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            raise CannotStart(
                f"the data directory {data_dir} belongs to a running head "
                f"(pid {file.read().strip() or 'unknown'}): stop it, or pass another --data-dir",
                Code.DATA_DIR_IN_USE,
            ) from error
        with suppress(OSError):
            file.truncate(0)
            file.write(f"{os.getpid()}\n")
            file.flush()
        yield


def _opened(path: Path) -> TextIO:
    try:
        return path.open("a+")
    except OSError:
        if not path.is_file():
            raise
        return path.open()


def announce(data_dir: Path, addresses: Mapping[str, str], who: str = "head") -> None:
    """Writes head.json: the addresses that this head serves at, free ports filled in; or that of
    another process of its. Where nothing can be written, what the last one wrote stands."""
    path = data_dir / f"{who}.json"
    scratch = path.with_suffix(".tmp")
    try:
        scratch.write_text(json.dumps({"pid": os.getpid(), **addresses}) + "\n")
        scratch.replace(path)
    except OSError as error:
        log.warning("%s is not written, where this %s serves stands nowhere: %s", path, who, error)


def check_store(data_dir: Path, *, existed: bool) -> None:
    """Raises `CannotStart` where the directory had a store and has none: an empty one would begin
    another cluster. `existed`: somebody says that it had one."""
    served = data_dir / "head.json"
    if store_path(data_dir).exists() or not had_store(data_dir, existed=existed):
        return
    why = "its store was there before" if existed else "a head has served from it"
    leave = "leave --existing-store out" if existed else f"remove {served}"
    raise CannotStart(
        f"the data directory {data_dir} holds no {store_path(data_dir).name}, though {why}: see "
        "whether its disk is mounted, or put the directory away and make another from a backup by "
        f"`penstock restore`; to begin with nothing, {leave}"
    )


def had_store(data_dir: Path, *, existed: bool) -> bool:
    """Whether a head has had a store in this directory, which it announces after it is made."""
    return existed or (data_dir / "head.json").exists()


def announced(data_dir: Path, name: str) -> str:
    """The address that the last head on this directory announced; empty where none did."""
    with suppress(OSError, ValueError, AttributeError):
        return str(json.loads((data_dir / "head.json").read_text()).get(name, ""))
    return ""


def trouble(data_dir: Path) -> str:
    """Why a head that runs cannot keep anything in its directory, or soon cannot; empty: it can."""
    try:
        disk = os.statvfs(data_dir)
        store_path(data_dir).stat()
    except OSError as error:
        return f"the data directory {data_dir} is gone or cannot be read: {error.strerror}"
    if disk.f_flag & os.ST_RDONLY:
        return f"the data directory {data_dir} is read-only: nothing that changes is kept"
    if disk.f_bavail * disk.f_frsize < LEAST_FREE:
        return f"the disk of the data directory {data_dir} is full: make room"
    return ""


def announced_by(data_dir: Path, who: str, pid: int) -> Mapping[str, str]:
    """All that this process announced; empty where it has not yet."""
    with suppress(OSError, ValueError, AttributeError):
        found = json.loads((data_dir / f"{who}.json").read_text())
        return found if found.get("pid") == pid else {}
    return {}


@contextmanager
def _writing(data_dir: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CannotStart(
            f"cannot write to the data directory {data_dir}: {error.strerror}; check its disk's "
            "space and its rights, or pass another --data-dir"
        ) from error


def head_pid_path(data_dir: Path) -> Path:
    """The lock of the directory's head; the file is there where one ever was."""
    return data_dir / "head.pid"


def store_path(data_dir: Path) -> Path:
    """The store's file."""
    return data_dir / "penstock.db"


def shadows_path(data_dir: Path) -> Path:
    """What the comparer counted."""
    return data_dir / "shadow.sqlite"


def logs_path(data_dir: Path) -> Path:
    """What gateways, replicas and the children of `penstock serve` write."""
    return data_dir / "logs"


def adapters_path(data_dir: Path) -> Path:
    """The contents of the adapters that are registered."""
    return data_dir / "adapters"


def adapter_cache_path(data_dir: Path) -> Path:
    """What a node agent fetched of them; `penstock serve` has a head in the same directory."""
    return data_dir / "adapter-cache"


def cluster_token_path(data_dir: Path) -> Path:
    """What head, agents, gateways and replicas prove to each other that they belong together."""
    return data_dir / "cluster.token"


def admin_token_path(data_dir: Path) -> Path:
    """The token of role admin that the head's first start makes."""
    return data_dir / "admin.token"


def secrets_path(data_dir: Path) -> Path:
    """Where a node's provider replicas find keys, unless another directory was named."""
    return data_dir / "secrets"


def programs_path(data_dir: Path) -> Path:
    """Where router programs say how they are asked: a node agent's, and its gateway's."""
    return data_dir / "programs"


def program_texts_path(data_dir: Path) -> Path:
    """The texts of the programs that run here, by digest."""
    return data_dir / "program-texts"


def evidence_path(data_dir: Path) -> Path:
    """The reports of evaluations of adapters."""
    return data_dir / "evidence"
