"""The way into vLLM's engine process: calls from the frontend, workers' words, and the time.

vLLM runs utility calls on the engine's thread between two steps, and answers them later where they
give a future. Other threads of this process leave work here, which is done at the same place: the
loop is woken as vLLM wakes it to stop, and whatever it takes from its queue, it first does what was
left. Imports vLLM: only in the engine's process.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from vllm.v1.core import kv_cache_utils
from vllm.v1.engine import EngineCoreRequestType
from vllm.v1.engine.core import EngineCoreProc

log = logging.getLogger(__name__)

Work = Callable[[], None]


class Thread:
    """The engine's thread, seen from others. `attach` it before anything is to be done there."""

    def __init__(self) -> None:
        self._left: deque[Work] = deque()
        self._core: Any = None

    def attach(self, core: Any) -> None:
        """From now on what is left is done; what was left before, too."""
        handle = core._handle_client_request

        def handled(kind: Any, request: Any) -> None:
            self._work()
            handle(kind, request)

        core._handle_client_request = handled
        self._core = core
        self._work()

    def leave(self, work: Work) -> None:
        """Has it done there, soon. From any thread."""
        self._left.append(work)
        if self._core is not None:
            self._core.input_queue.put_nowait((EngineCoreRequestType.WAKEUP, None))

    def _work(self) -> None:
        while self._left:
            try:
                self._left.popleft()()
            except Exception:
                log.exception("microserving: what a thread had left to do failed")


class Alarm:
    """Has something done on the engine's thread at a time; the last that was said counts. Without
    one its thread sleeps."""

    def __init__(self, leave: Callable[[Work], None], work: Work) -> None:
        self._leave = leave
        self._work = work
        self._changed = threading.Condition()
        self._at: float | None = None
        threading.Thread(target=self._run, name="kv-leases", daemon=True).start()

    def set(self, at: float | None) -> None:
        """Monotonic seconds; none: never."""
        with self._changed:
            earlier = at is not None and (self._at is None or at < self._at)
            self._at = at
            if earlier:
                self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                left = None if self._at is None else self._at - time.monotonic()
                if left is None or left > 0:
                    self._changed.wait(left)
                    continue
                self._at = None
            self._leave(self._work)


def install() -> None:
    """Has the engine answer our calls, and block hashes be the same on every machine."""
    EngineCoreProc.penstock_microserving = _asked
    kv_cache_utils._gen_lora_extra_hash_keys = _lora_keys


def _asked(core: Any, operation: str, asked: dict[str, Any]) -> Any:
    return core.scheduler.connector.asked(core, operation, asked)


def _lora_keys(request: Any) -> list[tuple[str, str, str]]:
    """What an adapter adds to the hashes of blocks. Its name says which bytes it has; vLLM adds the
    directory in which this machine keeps them."""
    lora = request.lora_request
    return [("lora", lora.lora_name, "")] if lora else []
