"""Starts vLLM's engine, in a thread that lives as long as the engine.

Loading takes seconds to minutes and blocks; in a thread of its own the replica's loop goes on, so
that health checks are answered and a signal is heard. The thread must outlive the engine, because
the kernel ends the engine's process when the thread that started it ends (`engine_process.py`).

Imports vLLM only inside functions.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import multiprocessing
import tempfile
import threading
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from penstock.replica.default_model import engine_args as shipped_args
from penstock.replica.stages import Stages
from penstock.replica.values import CannotLoad, Death, EngineError
from penstock.replica.vllm import surface
from penstock.replica.vllm.microserving.checks import check_config
from penstock.replica.vllm.start import causes, checks, engine_process, environment, imports
from penstock.replica.vllm.start.arguments import Circumstances, Option, command_line, own_settings
from penstock.replica.vllm.start.causes import Causes
from penstock.replica.vllm.start.known_causes import in_our_words
from penstock.replica.vllm.start.memory import judging
from penstock.replica.vllm.start.memory.sums import Machine
from penstock.replica.vllm.start.preload import ForkedEngine
from penstock.replica.vllm.surface.values import Stage

if TYPE_CHECKING:
    from penstock.replica.vllm.serving.client import TappedLLM
    from penstock.replica.vllm.serving.gauges import Gauges

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Order:
    """What to start."""

    place: checks.ModelPlace
    served_name: str
    engine_args: Mapping[str, str]
    adapter_slots: int = 0  # 0: none, unless `engine_args` has enable_lora
    adapter_rank: int = 0  # 0: vLLM's default
    sleeps: bool = False  # it is to be put to sleep at times
    microserving: str = ""  # the host at which it takes KV; empty: it moves none


@dataclass(frozen=True, slots=True)
class Launched:
    """An engine that is up, not warm yet."""

    place: checks.ModelPlace
    llm: TappedLLM
    gauges: Gauges
    args: Namespace
    cpu: bool
    processes: tuple[psutil.Process, ...]

    def cpu_seconds(self) -> float:
        """What the engine's processes have used so far; those that ended count no more."""
        used = 0.0
        for process in self.processes:
            with contextlib.suppress(psutil.Error):
                times = process.cpu_times()
                used += times.user + times.system
        return used


class Launcher:
    """Owns the engine's thread and processes. Use it from one loop; `stop` it in every case."""

    def __init__(self, order: Order, forked: ForkedEngine | None, stages: Stages) -> None:
        """`forked`: what is to be the engine's process; without it vLLM spawns one."""
        self._order = order
        self._stages = stages
        self._forked = forked
        new_files = tempfile.TemporaryDirectory
        self._files = forked.files if forked else new_files(prefix="penstock-vllm-")
        self._causes = Causes(Path(self._files.name))
        self._stopped = threading.Event()
        self._ended = threading.Event()
        self._strangers = set(multiprocessing.active_children())
        if forked:
            self._strangers.discard(forked.process)
        self._launched: Launched | None = None

    async def start(self) -> Launched:
        """Loads the engine. Raises `CannotLoad`, or `EngineError` if another try may help."""
        outcome: asyncio.Future[Launched] = asyncio.get_running_loop().create_future()
        threading.Thread(target=self._live, args=(outcome,), name="engine", daemon=True).start()
        self._launched = await outcome
        return self._launched

    async def stop(self) -> None:
        """Ends the engine and its processes; also while it still loads."""
        self._stopped.set()
        # Its last words are an error: that the engine is gone.
        logging.getLogger("vllm.v1.engine.async_llm").setLevel(logging.CRITICAL)
        try:
            if self._launched is not None:
                try:
                    await asyncio.to_thread(self._launched.llm.shutdown)
                finally:
                    self._launched.llm.end_calls()
        finally:
            for process in set(multiprocessing.active_children()) - self._strangers:
                process.kill()
                await asyncio.to_thread(process.join)
            self._ended.set()
            self._files.cleanup()

    def dead(self) -> bool:
        """Whether the engine is up no more."""
        return self._launched is not None and bool(self._launched.llm.errored)

    def death(self) -> Death:
        """Why the engine is dead."""
        if self._launched is not None and (fault := self._launched.llm.fault):
            what = f"{type(fault).__name__}: {fault}".removesuffix(": ")
            said = f"its outputs could not be taken: {causes.shortened(what)}"
            return Death(said, killed=isinstance(fault, MemoryError))
        return self._causes.death(self._exit_codes)

    def _live(self, outcome: asyncio.Future[Launched]) -> None:
        loop = outcome.get_loop()
        try:
            launched = self._launch()
        except BaseException as error:
            failure = self._explain(error)
            loop.call_soon_threadsafe(_settle, outcome, lambda: outcome.set_exception(failure))
        else:
            loop.call_soon_threadsafe(_settle, outcome, lambda: outcome.set_result(launched))
        self._ended.wait()

    def _launch(self) -> Launched:
        place, engine_args = self._order.place, self._order.engine_args
        log_here, log_engine = self._causes.log_configs(environment.log_level())
        environment.prepare(
            offline=place.directory is not None,
            threads=own_settings(engine_args).threads or checks.fitting_threads(place),
            log_config=log_here,
        )
        checks.check_version(imports.version(), untested=own_settings(engine_args).untested_vllm)
        log.info("importing vLLM")
        from vllm.platforms import current_platform

        checks.check_device(found=not current_platform.is_unspecified())
        cpu = bool(current_platform.is_cpu())
        if cpu:
            self._check_memory()
        surface.check(Stage.ENGINE)
        if self._forked is None:
            self._stages.ended("import")
        args = self._arguments(cpu=cpu)
        if cpu and args.enforce_eager:
            environment.never_compile()
        llm, gauges = self._engine(args, log_engine)
        return Launched(place, llm, gauges, args, cpu, _processes(llm))

    def _check_memory(self) -> None:
        """Refuses what this machine has no room for, which its kernel would end later."""
        order = self._order
        asked = judging.Order(order.engine_args, order.adapter_slots, order.adapter_rank)
        judging.check(order.place, asked, Machine(free=checks.free_memory()))

    def _arguments(self, *, cpu: bool) -> Namespace:
        from vllm.entrypoints.launchers.cli_args import make_arg_parser
        from vllm.utils.argparse_utils import FlexibleArgumentParser

        order = self._order
        parser = make_arg_parser(FlexibleArgumentParser(prog="vllm"))
        parser.error = _refuse
        circumstances = Circumstances(
            cpu,
            order.adapter_slots,
            order.adapter_rank,
            checks.longest_context(order.place),
            checks.writes_text(order.place),
            shipped_args(order.place.name),
            order.sleeps,
            order.microserving,
            environment.traces_endpoint(),
        )
        words = command_line(order.engine_args, options_of(parser), circumstances)
        fixed = ["--model", order.place.argument, "--served-model-name", order.served_name]
        args: Namespace = parser.parse_args([*fixed, *words])
        return args

    def _engine(self, args: Namespace, log_engine: Path) -> tuple[TappedLLM, Gauges]:
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.usage.usage_lib import UsageContext

        from penstock.replica.vllm.serving.client import TappedLLM
        from penstock.replica.vllm.serving.gauges import Gauges

        log.info("reading the model's config")
        usage = UsageContext.OPENAI_API_SERVER
        config = AsyncEngineArgs.from_cli_args(args).create_engine_config(usage_context=usage)
        if self._order.microserving:
            check_config(config)
        self._stages.ended("config")
        if self._stopped.is_set():
            raise EngineError("the engine was stopped while it loaded")
        log.info("loading the model")
        environment.prepare_engine(log_config=log_engine, faults=self._causes.faults)
        with self._forked.adopted() if self._forked else _own_process_target():
            llm = TappedLLM.from_vllm_config(
                config, usage_context=usage, stat_loggers=[Gauges], disable_log_stats=True
            )
        self._stages.ended("load")
        llm.death = self.death
        gauges = next(g for g in llm.logger_manager.stat_loggers if isinstance(g, Gauges))
        gauges.requests = llm.output_processor.request_states
        gauges.stepped, gauges.held = llm.gate.stepped, llm.gate.held
        return llm, gauges

    def _exit_codes(self) -> list[int | None]:
        if self._launched is None:
            return []
        return [process.exitcode for process in _cores(self._launched.llm)]

    def _explain(self, error: BaseException) -> EngineError:
        if isinstance(error, EngineError):
            return error
        log.debug("vLLM did not start", exc_info=error)
        cause = causes.of_exception(error)
        if causes.is_indirect(error):
            signalled, logged = self._causes.start_failure(error)
            if signalled or not logged:
                return EngineError(f"the engine did not start: {signalled or cause}")
            cause = logged
        return CannotLoad(self._order.place.failure(in_our_words(cause)))


def _cores(llm: TappedLLM) -> list[Any]:
    manager: Any = llm.engine_core.resources.engine_manager
    return list(manager.processes)


def _processes(llm: TappedLLM) -> tuple[psutil.Process, ...]:
    """The engine's processes: its cores, and the workers that they started."""
    cores = [psutil.Process(core.pid) for core in _cores(llm)]
    return tuple(one for core in cores for one in (core, *core.children(recursive=True)))


def _settle(outcome: asyncio.Future[Launched], how: Callable[[], None]) -> None:
    """In the loop: tells the one who waits, if anybody still does."""
    if not outcome.done():
        how()


def _refuse(message: str) -> None:
    """Stands in for argparse's `error`, which would end the process."""
    raise CannotLoad(f"engine settings: {causes.shortened(message)}")


def options_of(parser: Any) -> dict[str, Option]:
    """The options of vLLM's parser, by name."""
    options: dict[str, Option] = {}
    for action in parser._actions:
        flags = [flag for flag in action.option_strings if flag.startswith("--")]
        if flags:
            options[action.dest] = Option(flags[0], _kind(action))
    return options


def _kind(action: Any) -> Any:
    if action.nargs == 0:
        return "pair" if any(f.startswith("--no-") for f in action.option_strings) else "switch"
    return "list" if action.nargs in ("+", "*") else "value"


@contextlib.contextmanager
def _own_process_target() -> Iterator[None]:
    """While it lasts, vLLM's engine process begins in `engine_process`."""
    from vllm.v1.engine.core import EngineCoreProc

    original = EngineCoreProc.__dict__["run_engine_core"]
    EngineCoreProc.run_engine_core = staticmethod(engine_process.run_engine_core)
    try:
        yield
    finally:
        EngineCoreProc.run_engine_core = original
