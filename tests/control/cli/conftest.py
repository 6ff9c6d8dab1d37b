"""An admin API on a real port, beside the test, for verbs that ask it."""

from __future__ import annotations

import asyncio
import functools
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer.main
import typer.testing
from typer.testing import CliRunner, Result

from penstock.control.admin.server import AdminServer
from penstock.control.cli.app import app
from penstock.control.secrets_files import write_secret
from tests.control.admin.app_harness import SECRET, Admin, running_admin

# Of each invocation, to make all verbs anew takes longer than the verb.
vars(typer.testing)["_get_command"] = functools.cache(typer.main.get_command)


@dataclass(frozen=True, slots=True)
class AskedHead:
    """The API's address, a data directory with its token, and what stands behind it."""

    address: str
    data_dir: Path
    admin: Admin

    def run(self, *arguments: str, input: str | None = None) -> Result:
        """`penstock` with these arguments, told of the address and the directory."""
        environment = {
            "PENSTOCK_ADMIN": self.address,
            "PENSTOCK_DATA_DIR": str(self.data_dir),
            "COLUMNS": "80",
            "NO_COLOR": "1",
            "TERM": "dumb",
        }
        return CliRunner(env=environment).invoke(app, list(arguments), input=input)


@pytest.fixture
def asked_head(tmp_path: Path) -> Iterator[AskedHead]:
    """A head's admin API in a thread of its own."""
    listener = socket.create_server(("127.0.0.1", 0))
    found: list[tuple[Admin, Callable[[], object]]] = []
    ready = threading.Event()

    async def serve() -> None:
        async with running_admin() as admin:
            server = AdminServer(admin.app, listener)
            found.append((admin, server.stop))
            ready.set()
            await server.run_until_stopped()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(30)
    (admin, stop), *_ = found
    write_secret(tmp_path / "admin.token", SECRET)
    yield AskedHead(f"127.0.0.1:{listener.getsockname()[1]}", tmp_path, admin)
    stop()
    thread.join()
    listener.close()
