"""vLLM imported once for two processes: the replica's, and its engine's, which is forked from it.

The import takes five seconds of a core, and an engine process that vLLM spawns does it again after
the replica has. So the replica's process imports vLLM before it has any thread, forks what is to
become its engine's process, and goes on: the fork imports the worker meanwhile and waits for vLLM's
arguments, which come through a pipe.

In a replica that was started this is for small models on vLLM's CPU build, which run on one thread
and in eager mode. A larger one wants vLLM's own OpenMP in front of the others (LD_PRELOAD, which is
read at exec), and may compile; on a GPU nobody has tried it. For those vLLM spawns, as it is made
to. A member of a warm pool has imported vLLM already, and those libraries with it: for such a one
`cold_starts.py` says what is not forked.

Imports vLLM only inside functions.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import multiprocessing
import os
import signal
import tempfile
from collections.abc import Iterator, Mapping
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final

from penstock.replica.values import CannotLoad, EngineError
from penstock.replica.vllm.start import causes, checks, engine_process, environment, imports
from penstock.replica.vllm.start.arguments import check_early, own_settings

log = logging.getLogger(__name__)

_UNFITTING: Final = frozenset(
    {"enforce_eager", "no_enforce_eager", "compilation_config", "mm_tensor_ipc"}
)
"""Settings by which an engine may compile (that it does not is settled before the import), or may
ask its process's context for a queue, which one that was forked before cannot have."""

_LAST_BREATH: Final = 5.0
"""Seconds from when a process closes its pipe to its end."""


class ForkedEngine:
    """A process that has imported vLLM and waits to be an engine. `stop` it in every case."""

    def __init__(self, files: tempfile.TemporaryDirectory[str]) -> None:
        """Forks. `files`: where vLLM finds how to log here; the launcher takes them over."""
        self.files = files
        context = multiprocessing.get_context("fork")
        receiver, self._orders = context.Pipe(duplex=False)
        self.process: BaseProcess = context.Process(
            target=_begin, args=(receiver, self._orders), name=engine_process.TITLE
        )
        self.process.start()
        receiver.close()

    @contextlib.contextmanager
    def adopted(self) -> Iterator[None]:
        """While it lasts, the process that vLLM starts for its engine is this one."""
        from vllm.v1.engine import utils

        original = utils.get_mp_context
        utils.get_mp_context = lambda: _Context(self)
        try:
            yield
        finally:
            utils.get_mp_context = original

    def give(self, work: Mapping[str, Any]) -> None:
        """Tells the process what to do: vLLM's arguments, and the environment as it is now.

        Raises `EngineError` if it has ended while it waited; a new one may fare better.
        """
        try:
            with self._orders:
                self._orders.send((environment.as_it_is(), dict(work)))
        except OSError:
            self.process.join(_LAST_BREATH)
            why = causes.exit_cause([self.process.exitcode]) or "its process ended"
            raise EngineError(f"the engine ended while it waited for its model: {why}") from None

    def stop(self) -> None:
        """Ends the process, whatever it does, and removes its files."""
        self.process.kill()
        self.process.join()
        self._orders.close()
        self.files.cleanup()


class _Context:
    """Stands in for a context of multiprocessing: its one process is the forked one."""

    def __init__(self, forked: ForkedEngine) -> None:
        self._forked = forked

    def Process(self, *, target: Any, name: str, kwargs: Mapping[str, Any]) -> _Adopted:
        del target, name  # the same for every engine: `engine_process.run_engine_core`
        return _Adopted(self._forked, kwargs)


class _Adopted:
    """The forked process, as one that is yet to be started; else it is a `Process` as any."""

    def __init__(self, forked: ForkedEngine, work: Mapping[str, Any]) -> None:
        self._forked = forked
        self._work = work

    def start(self) -> None:
        self._forked.give(self._work)
        imports.app()  # vLLM waits now until the engine has loaded its model

    def __getattr__(self, name: str) -> Any:
        return getattr(self._forked.process, name)


def preload(
    model: str, engine_args: Mapping[str, str], *, allow_model_code: bool, imported: bool = False
) -> ForkedEngine | None:
    """Imports vLLM and forks the engine's process, if that fits; before there is any thread.

    `imported`: it was, in the process that this one was forked of, and what fits was asked there.
    What is wrong with the settings, the model or vLLM is told by the engine's start, in a replica
    that its node agent knows of by then.
    """
    try:
        check_early(engine_args, allow_model_code=allow_model_code)
        place = checks.find_model(model)
    except CannotLoad:
        return None
    if not imported and not fits(place, engine_args, cpu_build=imports.has_cpu_build()):
        return None
    try:
        return _preload(place, own_settings(engine_args).threads or checks.fitting_threads(place))
    except Exception as error:
        log.debug("vLLM could not be imported", exc_info=error)
        return None


def fits(place: checks.ModelPlace, engine_args: Mapping[str, str], *, cpu_build: bool) -> bool:
    """Whether such an engine may be forked: on a CPU, on one thread, eager, with one pipe."""
    threads = own_settings(engine_args).threads or checks.fitting_threads(place)
    names = {key.replace("-", "_") for key in engine_args}
    return cpu_build and threads == 1 and not names & _UNFITTING


def _preload(place: checks.ModelPlace, threads: int) -> ForkedEngine | None:
    with contextlib.ExitStack() as undo:
        files = tempfile.TemporaryDirectory(prefix="penstock-vllm-", ignore_cleanup_errors=True)
        undo.callback(files.cleanup)
        undo.callback(signal.signal, signal.SIGTERM, _remove_at_the_end(files))
        log_here, _ = causes.Causes(Path(files.name)).log_configs(environment.log_level())
        offline = place.directory is not None
        environment.prepare(offline=offline, threads=threads, log_config=log_here)
        log.info("importing vLLM")
        # Modules are no garbage; and a collection in either process copies what they share.
        gc.disable()
        undo.callback(gc.enable)
        imports.shared()
        gc.freeze()
        if _threads() > 1:  # what they hold would be held for ever in the fork
            return None
        forked = ForkedEngine(files)
        undo.pop_all()
        gc.enable()
        return forked


def _remove_at_the_end(files: tempfile.TemporaryDirectory[str]) -> Any:
    """From now on SIGTERM removes the files, and then does as before, which this returns. It stays
    so until the replica's loop takes the signal."""
    before = signal.getsignal(signal.SIGTERM)
    replica = os.getpid()

    def end(number: int, frame: Any) -> None:
        if os.getpid() == replica:  # and not in the fork, which begins with this handler
            files.cleanup()
        if callable(before):
            before(number, frame)
        else:
            os._exit(128 + number)

    signal.signal(signal.SIGTERM, end)
    return before


def _threads() -> int:
    """Threads of this process, those that no Python started among them."""
    return len(os.listdir("/proc/self/task"))


def _begin(receiver: Connection, sender: Connection) -> None:
    """In the fork: without its own end of the pipe it sees the other one close."""
    sender.close()
    engine_process.wait_for_work(receiver)
