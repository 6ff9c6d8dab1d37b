"""Why an engine did not start, or died: one line for a person.

The cause is known in the engine's own process and told only to its log. So that log also goes to a
file, one JSON object per line, and is read when the engine is gone.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

_INDIRECT: Final = re.compile(
    r"see (stack trace|root cause)|background process|Engine core initialization failed|EngineDead",
    re.I,
)
_PYDANTIC_TAIL: Final = re.compile(r" \[type=\w+, input_value=.*", re.S)
_LONGEST: Final = 600


def log_config(file: Path, level: str) -> dict[str, Any]:
    """A `logging.config` for vLLM: JSON lines on stderr, and errors to `file` as well."""
    fields = "%(asctime)s %(levelname)s %(name)s %(process)d %(message)s"
    names = {"asctime": "time", "levelname": "level", "name": "logger", "process": "pid"}
    formatter = {
        "()": "pythonjsonlogger.json.JsonFormatter",
        "fmt": fields,
        "rename_fields": names,
    }
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": formatter},
        "handlers": {
            "stderr": {"class": "logging.StreamHandler", "formatter": "json", "level": level},
            "causes": {
                "class": "logging.FileHandler",
                "formatter": "json",
                "level": "ERROR",
                "filename": str(file),
            },
        },
        "loggers": {"vllm": {"handlers": ["stderr", "causes"], "level": level, "propagate": False}},
    }


def logged_cause(file: Path) -> str:
    """The last exception that an engine process logged to `file`; empty if there is none."""
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return ""
    found = [text for text in _exceptions(lines) if not _INDIRECT.search(text)]
    return shortened(found[-1]) if found else ""


def exit_cause(codes: Iterable[int | None]) -> str:
    """What the exit codes of the engine's processes say; empty if none has ended badly."""
    for code in codes:
        if code == -9:
            return "its process was killed by signal 9, as when memory runs out"
        if code:
            return f"its process ended with {f'signal {-code}' if code < 0 else f'code {code}'}"
    return ""


def of_exception(error: BaseException) -> str:
    """An exception's own words. pydantic's are cut down to what the model's check said."""
    text = str(error) or type(error).__name__
    match = re.search(r"Value error, (.*?)(?: Supported architectures| \[type=|\n|$)", text, re.S)
    return shortened(match.group(1) if match else text)


def is_indirect(error: BaseException) -> bool:
    """Whether the exception only says that the cause was told elsewhere."""
    return bool(_INDIRECT.search(str(error)))


def shortened(text: str) -> str:
    """On one line, and no longer than a person reads."""
    line = " ".join(_PYDANTIC_TAIL.sub("", text).split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "..."


def _exceptions(lines: Iterable[str]) -> Iterable[str]:
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if record.get("exc_info") and record.get("pid") != os.getpid():
            yield _last_exception(record["exc_info"])


def _last_exception(traceback: str) -> str:
    """The message at a traceback's end: all lines after the last indented one."""
    message: list[str] = []
    for line in reversed(traceback.rstrip().splitlines()):
        if line.startswith(" "):
            break
        message.insert(0, line)
    return " ".join(message)


__all__ = [
    "exit_cause",
    "is_indirect",
    "log_config",
    "logged_cause",
    "of_exception",
    "shortened",
]
