"""The head's directory, and a node agent's: who holds it, and what lies where in it."""

from __future__ import annotations

import fcntl
import json
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from penstock.control.errors import CannotStart, Code

log = logging.getLogger(__name__)

COMPARER = "comparer"  # as what it announces itself
LEAST_FREE = 1 << 20  # bytes; a disk with less takes no transaction for long


def owned(data_dir: Path) -> AbstractContextManager[None]:
    """Owns the directory as its head until the block, or the process, ends."""
    return locked(
        head_pid_path(data_dir),
        f"the data directory {data_dir} belongs to a running head",
        instead="pass another --data-dir",
        check="its disk's space and its rights, or pass another --data-dir",
    )


@contextmanager
def locked(
    path: Path,
    held: str,
    *,
    instead: str = "choose another --data-dir",
    check: str = "its rights, or choose another with --data-dir",
) -> Iterator[None]:
    """Holds the lock file until the block, or the process, ends. One that was held before is held
    all the same where nothing can be written to its directory.

    Raises `data-dir-in-use`, which says that it is `held` and by which process, and `CannotStart`.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = _opened(path)
    except OSError as error:
        raise CannotStart(
            f"cannot write to the data directory {path.parent}: {error.strerror}; check {check}"
        ) from error
    try:
        _take(lock, held, instead)
        yield
    finally:
        os.close(lock)


def _take(lock: int, held: str, instead: str) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.pread(lock, 32, 0).decode("ascii", "replace").strip()
        raise CannotStart(
            f"{held} (pid {holder or 'unknown'}): stop it, or {instead}", Code.DATA_DIR_IN_USE
        ) from error
    with suppress(OSError):  # a disk that takes nothing: the lock holds all the same
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)


def _opened(path: Path) -> int:
    """To write to, or to lock at least, where there is a file that cannot be written."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError:
        if not path.is_file():
            raise
        return os.open(path, os.O_RDONLY)


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
