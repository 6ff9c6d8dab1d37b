"""What verbs say where no head answers, or something else does, or the token is no good."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from penstock.control.cli.app import app
from penstock.control.data_dir import announce
from penstock.control.secrets_files import write_secret
from tests.control.cli.conftest import AskedHead

NOT_A_HEAD = b"HTTP/1.1 404 Not Found\r\ncontent-length: 27\r\n\r\n<h1>Welcome to nginx!</h1>\n"


@contextmanager
def answering(reply: bytes) -> Iterator[str]:
    """A server that says the same to everybody, and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                client, _ = listener.accept()
                with client:
                    if not client.recv(65536):
                        return
                    client.sendall(reply)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            socket.create_connection(listener.getsockname()).close()
            thread.join()


def the_line(reply: Result) -> str:
    """The one line that it says on stderr."""
    assert reply.exit_code == 1, reply.output
    (line,) = reply.stderr.splitlines()
    assert ": error: " in line
    return line


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (NOT_A_HEAD, "is not a Penstock head: it says 404 to GET /admin/v1/deployments"),
        (b"HTTP/1.1 302 Found\r\nlocation: /login\r\ncontent-length: 0\r\n\r\n", "it says 302"),
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi",
            "not as a Penstock head of this version",
        ),
        (b"SSH-2.0-OpenSSH_9\r\n", "does not speak HTTP as a head does"),
        (b"", "no head answers"),
    ],
)
def test_another_program_at_the_heads_address_is_told_apart(
    asked_head: AskedHead, reply: bytes, words: str
) -> None:
    with answering(reply) as address:
        line = the_line(asked_head.run("status", "--admin", address))
    assert words in line
    assert address in line


def test_where_nothing_listens_it_says_how_to_start_a_head(asked_head: AskedHead) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    line = the_line(asked_head.run("status", "--admin", address))
    assert f"no head answers at http://{address}" in line
    assert "penstock serve" in line


def test_a_data_directory_says_where_its_head_is(asked_head: AskedHead) -> None:
    announce(asked_head.data_dir, {"admin": asked_head.address})
    run, at = CliRunner().invoke, ["status", "--data-dir", str(asked_head.data_dir)]
    assert run(app, at).exit_code == 0
    announce(asked_head.data_dir, {"admin": "0.0.0.0:1"})
    assert "no head answers at http://127.0.0.1:1" in the_line(run(app, at))
    assert run(app, [*at, "--admin", asked_head.address]).exit_code == 0


@pytest.mark.parametrize(
    "address",
    ["", "127.0.0.1", "localhost:99999", "a b:80", "http://[::1", "http://h:99999", "http://"],
)
def test_an_address_that_is_none_is_refused(asked_head: AskedHead, address: str) -> None:
    assert "--admin" in the_line(asked_head.run("status", "--admin", address))


@pytest.mark.parametrize("name", ["", ".", "..", "a/b"])
@pytest.mark.parametrize("verb", ["delete", "drain", "replace"])
def test_a_name_that_nothing_can_have_is_told_as_one(
    asked_head: AskedHead, verb: str, name: str
) -> None:
    assert f"nothing is named {name!r}" in the_line(asked_head.run(verb, name))


def test_a_file_without_certificates_is_named(asked_head: AskedHead, tmp_path: Path) -> None:
    (tmp_path / "no.pem").write_text("nothing\n")
    for file in (tmp_path / "no.pem", tmp_path / "absent.pem"):
        assert str(file) in the_line(asked_head.run("status", "--tls-ca", str(file)))


def test_a_token_that_the_head_does_not_know_is_told_with_its_file(
    asked_head: AskedHead, tmp_path: Path
) -> None:
    write_secret(tmp_path / "other", "pst_other")
    line = the_line(asked_head.run("status", "--admin-token-file", str(tmp_path / "other")))
    assert f"does not know the token in {tmp_path / 'other'}" in line


@pytest.mark.parametrize(
    ("content", "mode", "words"),
    [("", 0o600, "holds no secret"), ("t", 0o644, "chmod 600"), ("two\nlines", 0o600, "no secret")],
)
def test_a_token_file_that_is_no_good_is_named(
    asked_head: AskedHead, tmp_path: Path, content: str, mode: int, words: str
) -> None:
    file = tmp_path / "bad"
    file.write_text(content)
    file.chmod(mode)
    line = the_line(asked_head.run("status", "--admin-token-file", str(file)))
    assert str(file) in line
    assert words in line


def test_a_missing_token_file_is_named(asked_head: AskedHead, tmp_path: Path) -> None:
    line = the_line(asked_head.run("status", "--admin-token-file", str(tmp_path / "none")))
    assert f"no admin token in {tmp_path / 'none'}" in line


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_token_behind_a_locked_door_is_told_as_such(
    asked_head: AskedHead, tmp_path: Path
) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0)
    line = the_line(asked_head.run("status", "--data-dir", str(locked)))
    assert "Permission denied" in line
