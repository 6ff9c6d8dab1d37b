"""Lines of logs as the admin API shows them."""

from __future__ import annotations

from pydantic import Field

from penstock.control.admin.derived import Model


class LogEntryModel(Model):
    """One line of a log; or, where `note` or `error` says something, that alone."""

    time: str = Field(default="", description="when it was written: 2026-01-31T12:00:00.123Z")
    level: str = Field(default="", description="debug, info, warning or error")
    process: str = Field(
        default="", description="head, gateway, node, replica, program, comparer or warm-pool"
    )
    name: str = Field(default="", description="among those of its kind; empty: it is the only one")
    node: str = Field(default="", description="where it ran; empty: on the head's machine")
    line: str = Field(default="", description="a JSON object, with the time and the level in it")
    note: str = Field(default="", description="what is to be known of the lines")
    error: str = Field(default="", description="why lines are missing")
