"""What a node agent does about a head that does not take its cluster token.

The token may come after the agent: a head's first start makes it, an operator copies it. So the
file is looked at again whenever the head refuses, and what it holds by then is taken up.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from penstock.control.errors import SecretUnusable
from penstock.control.secrets_files import read_secret


class TokenWatch:
    """Compares the token in use with what its file holds now.

    `take_up` is called once the file holds another one: the agent begins again with it, unless it
    is in `trouble` that keeps it from that.
    """

    def __init__(
        self,
        path: Path,
        in_use: str,
        take_up: Callable[[], None],
        trouble: Callable[[], str],
    ) -> None:
        self._path = path
        self._in_use = in_use
        self._take_up = take_up
        self._trouble = trouble

    def refused(self) -> str:
        """The head refused this agent: what follows from that, in one line for the log."""
        try:
            found = read_secret(self._path) if self._path.exists() else ""
        except SecretUnusable as error:
            return str(error)
        if why := self._trouble():
            return why
        if found and found != self._in_use:
            self._take_up()
            return f"what lies in {self._path} by now is taken up as the cluster token"
        wrong = "is not the head's" if found else "is not there"
        return (
            f"the cluster token {self._path} {wrong}: put a copy of the head's cluster.token there,"
            " mode 0600; it is taken up within seconds"
        )
