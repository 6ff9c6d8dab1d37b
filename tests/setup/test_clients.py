"""The clients' two folders: set-up's own scripts, a real venv, a fake uv and a fake npm."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.fake_machine import FakeMachine, program

ENSURE = "import clients, places; clients.ensure(places.LOGS)"
NPM = """
note()
if has("interrupt"):
    sys.exit(130)
os.makedirs("node_modules")
"""


@pytest.fixture
def tried(set_up: FakeMachine) -> FakeMachine:
    """A machine that was set up, with the clients' locks; npm comes with the Python clients."""
    node = set_up.checkout / "tests" / "clients" / "node"
    node.mkdir(parents=True)
    (node / "package-lock.json").write_text("{}")
    done = set_up.python("import clients, places; clients.python_clients(places.LOGS)")
    assert done.returncode == 0, done.stderr
    program(set_up.checkout / ".venv-clients" / "bin" / "npm", NPM)
    set_up.say("notes")
    return set_up


def test_the_python_clients_are_installed_by_their_hashes_apart_from_the_rest(
    set_up: FakeMachine,
) -> None:
    done = set_up.python("import clients, places; clients.python_clients(places.LOGS)")
    assert done.returncode == 0, done.stderr
    (install,) = set_up.calls("uv")
    assert "--require-hashes" in install
    assert str(set_up.checkout / ".venv-clients" / "bin" / "python") in install


def test_the_node_clients_are_those_of_the_lock_and_run_no_scripts(tried: FakeMachine) -> None:
    done = tried.python(ENSURE, SSL_CERT_FILE="/etc/own.pem")
    assert done.returncode == 0, done.stderr
    (call,) = tried.calls("npm")
    assert call[:2] == ["ci", "--ignore-scripts"]
    (env,) = tried.notes("npm")
    assert env["NODE_EXTRA_CA_CERTS"] == "/etc/own.pem"
    assert Path(env["PATH"].split(":")[0]) == tried.checkout / ".venv-clients" / "bin"


def test_what_is_installed_is_not_installed_again(tried: FakeMachine) -> None:
    for _ in range(2):
        assert tried.python(ENSURE).returncode == 0
    assert not tried.calls("uv")
    assert len(tried.calls("npm")) == 1


def test_another_lock_and_what_was_interrupted_are_made_anew(tried: FakeMachine) -> None:
    assert tried.python(ENSURE).returncode == 0
    lock = tried.checkout / "tests" / "clients" / "node" / "package-lock.json"
    lock.write_text('{"name": "another"}')
    tried.say("interrupt")
    assert tried.python(ENSURE).returncode == 1
    tried.unsay("interrupt")
    assert tried.python(ENSURE).returncode == 0
    assert len(tried.calls("npm")) == 3
