"""Why an engine did not start, or died: one line for a person.

The cause is known in the engine's own process and told only to its log, or, where a signal ended
it, to `faulthandler`. So the engine's process writes both to files, of bounded length, which are
read once, when it is gone. The replica's own process does not write there: each of the streams that
a death cuts off makes vLLM log an exception of its own.
"""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from penstock.replica.values import Death

_INDIRECT: Final = re.compile(
    r"see (stack trace|root cause)|background process|Engine core initialization failed|EngineDead",
    re.I,
)
_PYDANTIC_TAIL: Final = re.compile(r" \[type=\w+, input_value=.*", re.S)
_FAILED_PROCESS: Final = re.compile(r"Failed core proc\(s\): \{.*?: (-?\d+)")
_DEAD_WORKER: Final = re.compile(r"Worker proc \S+ died unexpectedly \(exit code: (-?\d+)\)")
_NO_MEMORY: Final = re.compile(r"out of memory|OutOfMemory|MemoryError", re.I)
_FRAME: Final = re.compile(r'File "(?:.*/site-packages/)?(.*)", line (\d+) in (.*)')
_LONGEST: Final = 600
_FILE_BYTES: Final = 1 << 20
_READ_BYTES: Final = 4 << 20


class Causes:
    """The files of one engine, in a directory of their own, and what they say once it is dead."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.faults = directory / "faults.txt"
        self.errors = directory / "errors.jsonl"
        self._told: Death | None = None

    def log_configs(self, level: str) -> tuple[Path, Path]:
        """Two files with a `logging.config` for vLLM: here, and in the engine's process."""
        here, engine = self._directory / "here.json", self._directory / "engine.json"
        here.write_text(json.dumps(log_config(level)))
        engine.write_text(json.dumps(log_config(level, self.errors)))
        return here, engine

    def death(self, exit_codes: Callable[[], Sequence[int | None]]) -> Death:
        """Why the engine is dead; found out by the first who asks after the cause is known."""
        if self._told is None:
            codes = [*dead_workers(self.errors), *exit_codes()]
            if found := self._find(codes):
                killed = -signal.SIGKILL in codes or bool(_NO_MEMORY.search(found))
                self._told = Death(found, killed=killed)
        return self._told or Death("its process ended", killed=True)  # nothing says it crashed

    def start_failure(self, error: BaseException) -> tuple[str, str]:
        """What is behind vLLM's saying that its engine did not start: the signal that ended it, or
        the exception it logged. Empty where there is none."""
        codes = [int(code) for code in _FAILED_PROCESS.findall(str(error))]
        return self._signalled(codes), logged_cause(self.errors)

    def _find(self, codes: Sequence[int | None]) -> str:
        """A fatal signal says more than what was logged before it, and an exit code says less."""
        return self._signalled(codes) or logged_cause(self.errors) or exit_cause(codes)

    def _signalled(self, codes: Sequence[int | None]) -> str:
        fatal = [code for code in codes if code and code < 0 and code != -signal.SIGTERM]
        if not fatal:
            return ""
        frame = deepest_frame(_tail(self.faults))
        return ", ".join(part for part in (exit_cause(fatal), frame) if part)


def log_config(level: str, errors: Path | None = None) -> dict[str, Any]:
    """A `logging.config` for vLLM: JSON lines on stderr; `errors` also to a file, the newest."""
    formatter = {
        "()": "penstock.replica.logs.LineFormatter",
        "process": "vllm engine" if errors else "vllm",
    }
    handlers: dict[str, Any] = {
        "stderr": {"class": "logging.StreamHandler", "formatter": "json", "level": level}
    }
    if errors is None:
        handlers["stderr"]["filters"] = ["calls"]
    else:
        handlers["errors"] = {
            "class": "logging.handlers.RotatingFileHandler",
            "formatter": "json",
            "level": "ERROR",
            "filename": str(errors),
            "maxBytes": _FILE_BYTES,
            "backupCount": 1,
        }
    logger = {"handlers": list(handlers), "level": level, "propagate": False}
    # In the replica's process the root has a handler of ours; in the engine's what libraries log,
    # and we ourselves, would be plain text.
    root = {"root": {"handlers": ["stderr"], "level": "WARNING"}} if errors else {}
    return {
        **root,
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": formatter},
        "filters": {"calls": {"()": "penstock.replica.vllm.serving.call_logs.WithoutClientsWords"}},
        "handlers": handlers,
        "loggers": {"vllm": logger},
    }


def logged_cause(file: Path) -> str:
    """The last exception that an engine process logged to `file`; empty if there is none."""
    before = file.with_name(file.name + ".1")
    lines = f"{_tail(before)}\n{_tail(file)}".splitlines()
    found = [text for text in _exceptions(lines) if not _INDIRECT.search(text)]
    return shortened(found[-1]) if found else ""


def dead_workers(file: Path) -> list[int]:
    """Exit codes of an engine's worker processes that ended first, and took it along; what it logs
    of itself then is that its calls were cancelled."""
    return [int(code) for code in _DEAD_WORKER.findall(_tail(file))]


def exit_cause(codes: Iterable[int | None]) -> str:
    """What the exit codes of the engine's processes say; empty if none has ended badly."""
    for code in codes:
        if code == -signal.SIGKILL:
            return "its process was killed by signal 9, as when memory runs out"
        if code:
            return f"its process ended with {_signal(-code) if code < 0 else f'code {code}'}"
    return ""


def deepest_frame(dump: str) -> str:
    """Where Python was in what `faulthandler` wrote: "in forward (cpu_attn.py, line 533)".

    A thread of OpenMP's has no Python frames; the main thread, written last, waits for it.
    """
    threads = re.split(r"\n(?=(?:Current thread|Thread) 0x)", dump)
    framed = [thread for thread in threads if _FRAME.search(thread)]
    current = [thread for thread in framed if thread.startswith("Current thread")]
    if not framed:
        return ""
    match = _FRAME.search((current or framed)[-1])
    return f"in {match[3]} ({match[1]}, line {match[2]})" if match else ""


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


def _signal(number: int) -> str:
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"


def _tail(file: Path) -> str:
    """The end of a file that may be long, or not there."""
    try:
        with file.open("rb") as opened:
            opened.seek(max(0, opened.seek(0, 2) - _READ_BYTES))
            return opened.read().decode(errors="replace")
    except OSError:
        return ""


def _exceptions(lines: Iterable[str]) -> Iterable[str]:
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if record.get("exc_info"):
            yield _last_exception(record["exc_info"])


def _last_exception(traceback: str) -> str:
    """The message at a traceback's end: all lines after the last indented one."""
    message: list[str] = []
    for line in reversed(traceback.rstrip().splitlines()):
        if line.startswith(" "):
            break
        message.insert(0, line)
    return " ".join(message)
