"""A setting that is on or off, as users say it."""

from __future__ import annotations

from enum import StrEnum

from penstock.control.declared.fields import Form, chosen
from penstock.control.errors import InvalidSpec


class Switch(StrEnum):
    """Whether something is done."""

    OFF = "off"
    ON = "on"

    def __bool__(self) -> bool:
        return self is Switch.ON


def switch(name: str) -> Form:
    """How a field of this name is said: another word raises InvalidSpec."""
    return Form(str, lambda said: chosen(Switch, name, str(said), InvalidSpec))
