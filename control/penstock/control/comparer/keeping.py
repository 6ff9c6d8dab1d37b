"""How prompts and answers are kept: under which key, redacted by which rules, for how long."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from penstock.control.comparer.recorder import NotKept, Recorder
from penstock.control.comparer.records import Bounds
from penstock.control.comparer.vault import Vault
from penstock.control.outside.clock import SystemClock
from penstock.control.supervision.clock import Clock
from penstock.evals.comparison.redaction import Rules, rules

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Keeping:
    """What the ledger needs to keep texts."""

    vault: Vault = field(default_factory=Vault)
    held: Rules = field(default_factory=rules)  # what redaction takes out
    bounds: Bounds = field(default_factory=Bounds)
    clock: Clock = field(default_factory=SystemClock)
    recorder: Recorder = field(init=False)

    def __post_init__(self) -> None:
        recorder = Recorder(self.clock.monotonic, self.held)
        object.__setattr__(self, "recorder", recorder)

    def text_of(self, write: Callable[[Recorder], bytes]) -> bytes:
        """What is to be kept. Models and clients may write anything: what breaks here is not kept.
        Raises `NotKept`."""
        if self.vault.trouble:
            raise NotKept("no key")
        try:
            return write(self.recorder)
        except NotKept:
            raise
        except Exception as error:
            log.exception("a pair's texts cannot be kept")
            raise NotKept("unreadable") from error
