"""How a replica process ends: its exit codes, and the errors that lead to them."""

from __future__ import annotations

import enum

from penstock.replica.values import CannotLoad, EngineError


class ExitCode(enum.IntEnum):
    """What the node agent learns from a replica's end."""

    STOPPED = 0  # drained and stopped, as asked
    ENGINE_DIED = 70
    ENGINE_HUNG = 71
    CANNOT_LOAD = 72  # model, adapter or settings are wrong: starting again would not help
    NOT_REGISTERED = 73  # the node agent did not take it
    INTERNAL = 74  # a fault of the replica's own
    WOKE_WRONG = 75  # after a sleep it is not what it was before


class EngineDied(EngineError):
    """The engine is dead; so is the replica."""


class EngineHung(EngineError):
    """The engine lives, but makes no progress."""


class WokeWrong(EngineError):
    """The engine does not answer as it did before its sleep, or does not wake."""


class NotRegistered(EngineError):
    """The node agent could not be told of this replica."""


def exit_code_of(error: BaseException) -> ExitCode:
    """The exit code that an error means: of an engine's, unless they say more, its death."""
    match error:
        case EngineHung():
            return ExitCode.ENGINE_HUNG
        case WokeWrong():
            return ExitCode.WOKE_WRONG
        case CannotLoad():
            return ExitCode.CANNOT_LOAD
        case NotRegistered():
            return ExitCode.NOT_REGISTERED
        case EngineError():
            return ExitCode.ENGINE_DIED
        case _:
            return ExitCode.INTERNAL


def first_cause(error: BaseException) -> BaseException:
    """The first error inside nested groups: what ended a TaskGroup."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
