"""What a line of a log says of itself, whoever wrote it. Pure.

Ours are JSON objects with `time` and `level`. What libraries write, and what is left of a process
that ended badly, is not: such a line is told as one, with the time of the line before it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from penstock.control.machine_logs.values import REPLICA, Author, LoggedLine
from penstock.control.state.providers.secret_texts import without_secrets

# Keys of the object itself: within a text of it quotes are escaped.
_TIME: Final = re.compile(r'"time": ?"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3})Z"')
_LEVEL: Final = re.compile(r'"level": ?"(\w+)"')
# As vLLM and those like it begin their lines: "(EngineCore pid=7) WARNING 11-27 12:00:00 [...".
_FOREIGN: Final = re.compile(
    r"(?:\([^)]*\) ?)?\[?(DEBUG|INFO|WARN|WARNING|ERROR|CRITICAL|FATAL)\b", re.I
)
# As gRPC and torch do: "I1128 12:00:00.123456 ...", "[W1128 12:00:00.123456789 ...".
_INITIAL: Final = re.compile(r"\[?([IWEF])\d{4} \d\d:\d\d:\d\d\.")
# "penstock-gateway: error: ...", the last line of who cannot go on, and the last of a traceback.
_LAST_WORDS: Final = re.compile(r"[\w -]{1,40}: error: |[A-Za-z_][\w.]*(?:Error|Exception)(?:: |$)")
_WORDS: Final = dict.fromkeys(("critical", "fatal", "e", "f"), "error") | dict.fromkeys(
    ("warn", "w"), "warning"
)
_LEVELS: Final = ("debug", "info", "warning", "error")
# A shorter name would be found in lines that mean something else by it.
_LEAST_TELLING: Final = 8
_OURS: Final = re.compile(r'"request_id": ?"(req_[0-9a-f]{24})"')
LONGEST: Final = 64 << 10  # characters of a line that are told
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def micros(moment: datetime) -> int:
    """A moment in microseconds since 1970."""
    return (moment - _EPOCH) // _MICROSECOND


def written(time_us: int) -> str:
    """A time as all lines have it, in UTC: 2026-01-31T12:00:00.123Z."""
    moment = _EPOCH + time_us * _MICROSECOND
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def time_of(line: str) -> int | None:
    """When it was written, as it says; None: it does not."""
    found = _TIME.search(line)
    if not found or not line.startswith("{"):
        return None
    try:
        return micros(datetime.fromisoformat(f"{found[1]}+00:00"))
    except ValueError:  # the thirteenth month
        return None


def logged(author: Author, line: str, time_us: int) -> LoggedLine:
    """A line as it is told, without what looks like a secret."""
    text, level = without_secrets(line[:LONGEST]), level_of(line)
    if time_of(text) is None or not _is_object(text):
        text = json.dumps({"time": written(time_us), "level": level, "message": text})
    return LoggedLine(author, time_us, level, text)


def _is_object(text: str) -> bool:
    """Whether it is whole: a process may have been killed while it wrote."""
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def level_of(line: str) -> str:
    """How bad it is, in one of our words; of a line that does not say, "info"."""
    if line.startswith("{"):
        found = _LEVEL.search(line)
    else:
        if _LAST_WORDS.match(line):
            return "error"
        found = _FOREIGN.match(line) or _INITIAL.match(line)
    word = found[1].lower() if found else "info"
    word = _WORDS.get(word, word)
    return word if word in _LEVELS else "info"


def naming(ids: Sequence[str]) -> Callable[[bytes], bool]:
    """Whether bytes of a log name a request by one of these; by none: any do.

    A name that others may have besides, as it is so short, counts where a request's stands alone.
    """
    if not ids:
        return lambda data: True
    names = {each for one in ids for each in (one, json.dumps(one)[1:-1])}
    anywhere = "|".join(re.escape(name) for name in names if len(name) >= _LEAST_TELLING)
    known = "|".join(map(re.escape, names))
    forms = [rf'"(?:client_)?request_id": ?"(?:{known})"']
    forms += [rf"(?<![A-Za-z0-9])(?:{anywhere})(?![A-Za-z0-9])"] if anywhere else []
    wanted, plain = re.compile("|".join(forms).encode()), [name.encode() for name in names]
    # To look for the plain name first takes a hundredth of the time.
    return lambda data: any(name in data for name in plain) and wanted.search(data) is not None


def our_ids(line: str) -> Sequence[str]:
    """What we call the requests that a line is about."""
    return _OURS.findall(line)


def is_of(author: Author, name: str) -> bool:
    """Whether it is the process of that name, or one of the deployment of that name; empty: of
    any."""
    if name in ("", author.name) or (not author.name and name == author.kind):
        return True
    deployment, _, number = author.name.rpartition("-")
    return (
        author.kind == REPLICA and deployment == name and bool(re.fullmatch("[0-9a-f]{6}", number))
    )
