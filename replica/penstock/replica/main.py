"""A replica's life: bind, register, load, warm up, be ready, drain, stop.

One TaskGroup owns everything that runs. Whatever ends the group says with which code the process
ends (`endings.py`).
"""

from __future__ import annotations

import asyncio
import atexit
import json
import logging
import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from penstock.replica import _server
from penstock.replica.adapters.agent import AgentContents
from penstock.replica.adapters.keeper import Keeper
from penstock.replica.adapters.values import AdapterRoom
from penstock.replica.calls import wire
from penstock.replica.calls.bridge import Bridge
from penstock.replica.calls.inbox import Inbox
from penstock.replica.endings import (
    EngineDied,
    EngineHung,
    ExitCode,
    exit_code_of,
    first_cause,
)
from penstock.replica.engine import Engine
from penstock.replica.engine_calls.methods import EngineCalls
from penstock.replica.engine_calls.router_tokens import RouterTokens
from penstock.replica.engine_calls.token_requests import keep_told_tokens
from penstock.replica.logs import configure_logs, tell_end
from penstock.replica.ports import host_of, served_at
from penstock.replica.reporting.control_requests import ControlRequests
from penstock.replica.reporting.health import Health
from penstock.replica.reporting.life import Happening, State
from penstock.replica.reporting.presence import Presence
from penstock.replica.reporting.progress import Patience
from penstock.replica.reporting.registration import Registration
from penstock.replica.settings import PROVIDERS, Settings, parse_settings
from penstock.replica.simulated.engine import SimulatedEngine
from penstock.replica.stages import Stages
from penstock.replica.values import CannotLoad, EngineError, EngineFacts, Failed

if TYPE_CHECKING:
    from penstock.replica.engine_calls.rest_server import RestServer
    from penstock.replica.vllm.start.preload import ForkedEngine

log = logging.getLogger(__name__)

_LAST_WORDS = 1.0  # seconds for failed calls to reach their clients
_ENGINE_STOP = 15.0  # seconds an engine gets to end by itself
_GRACE_MS = 200  # that frames under way get when the server stops


def main(argv: Sequence[str] | None = None, claimed: Stages | None = None) -> int:
    """Runs a replica and ends the process; returns an exit code where nothing could begin.

    `claimed`: the start of a member of a warm pool, which has imported its engine.
    """
    stages = claimed or Stages.of_program()
    try:
        settings = parse_settings(argv)
    except CannotLoad as error:
        return _tell(error)
    configure_logs(settings.replica_id, settings.log_level)
    signal.signal(signal.SIGTERM, _end_at_once)
    forked = preload(settings, imported=claimed is not None)
    if forked is not None and claimed is None:
        stages.ended("import")
    asyncio.run(run(settings, forked, stages))
    _leave()


def _leave() -> NoReturn:
    """Ends the process without the interpreter's own end: a thread that still imports or loads
    would abort it there, in C++ that cannot be unwound, and libraries tell what they leaked."""
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(ExitCode.STOPPED)


def _end_at_once(number: int, frame: object) -> None:
    """Told to stop before there is anything to stop; a forked engine process ends with this one."""
    os._exit(ExitCode.STOPPED)


async def run(settings: Settings, forked: ForkedEngine | None, stages: Stages) -> None:
    """Serves until told to stop. Any other end ends the process here: threads of a broken engine
    may never end, and asyncio would wait for them."""
    try:
        await Replica(settings, forked, stages).live()
    except Exception as error:
        if forked is not None:  # its process ends with this one
            forked.files.cleanup()
        os._exit(_tell(first_cause(error)))


def _tell(cause: BaseException) -> ExitCode:
    """Logs why the replica ends; returns the exit code that it means."""
    log.error("the replica ends", exc_info=None if isinstance(cause, EngineError) else cause)
    tell_end(str(cause) or type(cause).__name__)
    return exit_code_of(cause)


class Replica:
    """One replica, once."""

    def __init__(self, settings: Settings, forked: ForkedEngine | None, stages: Stages) -> None:
        self._settings = settings
        self._stages = stages
        self._stop = asyncio.Event()
        self._inbox = Inbox()
        self._engine = make_engine(settings, self._inbox, forked, stages)
        self._keeper = Keeper(self._engine.adapters, settings.adapters)
        self._server = served_at(
            settings.listen,
            lambda address: _server.InferenceServer(
                address, self._inbox.native, settings.callers_token
            ),
        )
        self._bridge: Bridge | None = None  # where calls come to Python
        self._router_tokens = RouterTokens()
        keep_told_tokens(self._inbox, self._server, self._router_tokens)
        self._registration = Registration(
            settings.agent,
            settings.replica_id,
            self._server.address,
            os.getpid(),
            settings.own_token,
            stages,
        )
        self._presence = Presence(self._server, self._engine, self._registration.resume_known)
        self._health = Health(self._engine, settings.served_name)

    async def live(self) -> None:
        """Serves until SIGTERM or SIGINT. Raises what else ends a replica."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        try:
            await self._serve()
        finally:
            stopped = await self._close()
        if not stopped:
            raise EngineHung("the engine does not stop")

    async def _serve(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            background = [tasks.create_task(self._presence.keep_publishing())]
            controls = ControlRequests(
                self._server,
                self._engine,
                self._health,
                self._presence,
                tasks,
                self._keeper,
                self._settings.sleep,
                self._settings.served_name,
            )
            controls.attach(self._inbox)
            # Only now: what the inbox brings before somebody listens is never answered.
            self._inbox.open()
            try:
                if self._settings.agent:
                    await self._registration.announce()
                if facts := await self._load(tasks):
                    background += self._open(facts, controls, tasks)
                    await self._stop.wait()
                    await self._drain(controls)
            finally:
                for task in background:
                    task.cancel()

    async def _load(self, tasks: asyncio.TaskGroup) -> EngineFacts | None:
        """Starts the engine. None if the replica was told to stop meanwhile."""
        log.info("loading", extra={"engine": self._settings.engine, "model": self._settings.model})
        stop = tasks.create_task(self._stop.wait())
        start = tasks.create_task(self._engine.start())
        await asyncio.wait({stop, start}, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if start.done():
            return await start
        start.cancel()
        return None

    def _open(
        self, facts: EngineFacts, controls: ControlRequests, tasks: asyncio.TaskGroup
    ) -> list[asyncio.Task[None]]:
        """Takes calls from now on, unless it was told to drain while it loaded; returns the tasks
        that watch over it."""
        if isinstance(self._engine, SimulatedEngine):
            self._server.answer_with(self._engine.native)
        calls = EngineCalls(self._engine, self._settings.served_name)
        self._bridge = Bridge(self._server, calls.answer, facts, tasks)
        self._bridge.attach(self._inbox)
        if self._settings.microserving and self._engine.microserving is None:
            raise CannotLoad(f"the engine {self._settings.engine} moves no KV: microserving is off")
        rest = self._make_rest()
        state = self._presence.loaded(facts)
        if self._settings.sleep.level and (why := controls.reluctance()):
            log.warning("this replica will not sleep, and is ended in its place: %s", why)
        watches = [self._watch_death(controls), self._watch_progress(controls), self._keeper.run()]
        if rest is not None:
            watches.append(rest.run_until_stopped())
        if state is State.READY:
            watches.append(self._tell_ready(facts, rest.address if rest else ""))
        else:
            log.info("loaded, and not ready", extra={"state": state.value})
        return [tasks.create_task(watch) for watch in watches]

    def _make_rest(self) -> RestServer | None:
        """MicroServing's REST, where it is asked for."""
        settings = self._settings
        if not settings.microserving_rest:
            return None
        from penstock.replica.engine_calls.rest_server import RestServer

        token = settings.callers_token
        return RestServer(settings.listen, self._server.address, token, self._router_tokens)

    async def _tell_ready(self, facts: EngineFacts, rest: str) -> None:
        capacity = self._settings.max_ongoing or facts.max_running
        told = {"address": self._server.address, "capacity": capacity}
        log.info("ready", extra={**told, "stages_ms": self._stages.told()})
        if self._settings.agent:
            self._registration.ready(facts.max_model_len, capacity, facts.endpoints, rest)
            self._tell_adapters()
            self._engine.adapters.watch(self._tell_adapters)
            await self._registration.keep_telling()
        else:
            _print_ready(self._server.address, rest)

    def _tell_adapters(self) -> None:
        table = self._engine.adapters
        self._registration.holds(
            map(wire.adapter_message, table.held()),
            map(wire.failure_message, table.failed()),
            table.slots,
            table.max_rank,
        )

    async def _watch_death(self, controls: ControlRequests) -> None:
        death = await self._engine.died()
        await self._fail_all(_lost(death.code, f"The engine died: {death}"), controls)
        raise EngineDied(str(death))

    async def _watch_progress(self, controls: ControlRequests) -> None:
        try:
            patience = Patience(self._settings.hung_after, self._settings.stuck_after)
            await self._health.watch(self._settings.probe_every, patience)
        except EngineHung as hung:
            await self._fail_all(_lost("engine_hung", f"The engine hangs: {hung}."), controls)
            raise

    async def _fail_all(self, failed: Failed, controls: ControlRequests) -> None:
        """Takes no more calls, and ends those that run."""
        self._presence.hear(Happening.DRAIN)
        if self._bridge is not None:
            self._bridge.fail_all(failed)
        self._server.fail_all(wire.error_detail(failed).SerializeToString())
        await controls.drained(_LAST_WORDS)

    async def _drain(self, controls: ControlRequests) -> None:
        log.info("draining", extra={"running": self._server.running()})
        self._presence.hear(Happening.DRAIN)
        if left := await controls.drained(self._settings.drain):
            log.warning("calls are cut off", extra={"left": left})
            await self._fail_all(_CUT_OFF, controls)

    async def _close(self) -> bool:
        """Whether everything has ended."""
        self._inbox.close()
        self._presence.hear(Happening.STOP)
        self._server.stop(_GRACE_MS)
        try:
            async with asyncio.timeout(_ENGINE_STOP):
                await self._engine.stop()
        except TimeoutError:
            return False
        log.info("stopped")
        return True


def preload(settings: Settings, *, imported: bool = False) -> ForkedEngine | None:
    """What of the engine has to come before the first thread; gRPC has some."""
    if settings.engine != "vllm":
        return None
    from penstock.replica.vllm.start import preload as vllm

    return vllm.preload(
        settings.model,
        settings.engine_args,
        allow_model_code=settings.allow_model_code,
        imported=imported,
    )


def make_engine(
    settings: Settings,
    inbox: Inbox,
    forked: ForkedEngine | None = None,
    stages: Stages | None = None,
) -> Engine:
    """The engine that the settings name. Only the real one brings vLLM with it, and only a
    provider's the library that speaks with it."""
    room = _adapter_room(settings)
    if settings.engine == "simulated":
        return SimulatedEngine(
            settings.model,
            settings.served_name,
            settings.adapters,
            settings.engine_args,
            inbox,
            room,
            _kv_host(settings),
        )
    if settings.engine in PROVIDERS:
        from penstock.replica.providers.make import make_provider_engine

        return make_provider_engine(settings)
    from penstock.replica.vllm.engine import VllmEngine

    return VllmEngine(
        settings.model,
        settings.served_name,
        settings.adapters,
        settings.engine_args,
        allow_model_code=settings.allow_model_code,
        forked=forked,
        room=room,
        stages=stages,
        sleeps=bool(settings.sleep.level),
        microserving=host_of(settings.listen) if settings.microserving else "",
    )


def _kv_host(settings: Settings) -> str:
    """Where its engine takes KV from others; empty: it moves none."""
    return host_of(settings.listen).strip("[]") if settings.microserving else ""


def _adapter_room(settings: Settings) -> AdapterRoom:
    timeout = settings.adapter_load_timeout
    contents = None
    if settings.agent:
        contents = AgentContents(settings.agent, timeout, settings.own_token)
    return AdapterRoom(settings.max_adapters, settings.max_adapter_rank, timeout, contents)


def _lost(code: str, message: str) -> Failed:
    """How calls end that an engine took along. Any of them may be what ended it: none is tried on
    another engine, but for those that never got into this one (see `Bridge.fail_all`)."""
    return Failed(503, "server_error", code, message)


_CUT_OFF = Failed(
    503, "server_error", "draining", "The replica stopped before the end.", retryable=True
)


def _print_ready(address: str, rest: str) -> None:
    """Tells whoever started a replica without an agent that it is ready, on stdout."""
    told = {"ready": True, "address": address, "pid": os.getpid()}
    line = json.dumps(told | ({"microserving_rest": rest} if rest else {}))
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
