"""A member of the pool: waits on its socket, says what it may become, becomes it."""

from __future__ import annotations

import gc
import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from penstock.replica import parentage
from penstock.replica.endings import ExitCode
from penstock.replica.main import main
from penstock.replica.stages import Stages
from penstock.replica.warm_pool import process
from penstock.replica.warm_pool.channel import Channel, Heard
from penstock.replica.warm_pool.cold_starts import settings_words, why_cold
from penstock.replica.warm_pool.imports import Imported


class Member:
    """One forked process, from its first moment on. Its zygote's objects are nothing to it."""

    def __init__(self, imported: Imported, agent: Channel, claimed: Callable[[], None]) -> None:
        """`claimed` tells the zygote."""
        self._imported = imported
        self._agent = agent
        self._claimed = claimed

    def live(self, zygote: int) -> NoReturn:
        """Never returns into the zygote's code, whatever happens."""
        code: int = ExitCode.INTERNAL
        try:
            os.setpgid(0, 0)
            process.end_on_signals()
            parentage.die_with(zygote)
            process.keep_only([self._agent.fileno()])
            code = self._wait()
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _wait(self) -> int:
        while heard := self._agent.hear():
            if "become" in heard.fields:
                return self._become(heard)
            self._agent.tell(self._fits(heard.fields))
        return ExitCode.STOPPED

    def _fits(self, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        reason = why_cold(asked["fits"], self._imported)
        return {"fits": False, "reason": reason} if reason else {"fits": True}

    def _become(self, heard: Heard) -> int:
        """From here on it is as a process that was started with this command line."""
        order = heard.fields["become"]
        argv: list[str] = order["argv"]
        self._imported.check()
        parentage.outlive_parent()
        self._claimed()
        (log,) = heard.descriptors
        process.write_to(log)
        process.take_environment(order["env"])
        process.write_command_line(argv)
        sys.argv = [argv[0], *settings_words(argv)]
        process.forget_randomness()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        gc.enable()
        self._agent.tell({"become": True})
        self._agent.close()
        return main(settings_words(argv), Stages.of_claim(order["claimed_at_ms"]))
