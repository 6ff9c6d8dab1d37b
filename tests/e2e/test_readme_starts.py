"""Every line of the README's table "Other ways to start it" is started as it stands, and answers.

Only what a reader has to fill in is filled in: a model's path, certificates, a provider's key, free
addresses, a folder. Of those that name no engine all but one run the simulated one: what they are
about is the same for both, and vLLM starts slowly.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import ssl
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.replica.default_model import shipped
from tests.e2e.system import MARK, System, eventually
from tests.fakes import openai_server
from tests.fakes.ports import free_address
from tests.fakes.provider_server import ProviderServer

ROOT = Path(__file__).parents[2]
TLS = ROOT / "tests" / "fakes" / "tls"
TABLE = (ROOT / "README.md").read_text().partition("Other ways to start it")[2]
LINES = re.findall(r"^\| `(make serve .*?)` \|", TABLE.partition("\n\n\n")[0], re.MULTILINE)
QUESTION = {"messages": [{"role": "user", "content": "Who are you?"}], "max_tokens": 4}


class Made(System):
    """A system that is started by a line of the README; `settings` are variables of its own."""

    def __init__(self, folder: Path, line: str, settings: dict[str, str]) -> None:
        self._line = line
        self._settings = settings
        super().__init__(folder)

    def start(self) -> subprocess.Popen[bytes]:
        addresses = {
            "PENSTOCK_GATEWAY": f"127.0.0.1:{self.gateway_port}",
            "PENSTOCK_ADMIN": f"127.0.0.1:{self.admin_port}",
            "PENSTOCK_RPC": f"127.0.0.1:{self.rpc_port}",
            "PENSTOCK_METRICS": f"127.0.0.1:{self.metrics_port}",
            "PENSTOCK_DATA_DIR": str(self.data),
        }
        own = {**addresses, **self._settings, MARK: self.run_id}
        # As a terminal's Ctrl-C reaches make and what it runs, the stop goes to all of a session.
        with self.log.open("ab") as log:
            return subprocess.Popen(
                shlex.split(self._line), cwd=ROOT, stdout=log, stderr=log,
                env={**os.environ, **own}, start_new_session=True,
            )  # fmt: skip

    def end(self) -> None:
        """Ctrl-C; nothing may be left."""
        os.killpg(self.process.pid, signal.SIGINT)
        self.process.wait(timeout=30)
        assert not self.processes(), self.output()


@pytest.fixture
def provider() -> Iterator[ProviderServer]:
    """An account that asks for its key."""
    with ProviderServer(openai_server.usual(key=openai_server.KEY)) as server:
        yield server


def filled_in(line: str, values: dict[str, str]) -> str:
    """The line with a reader's own values."""
    for placeholder, value in values.items():
        line = line.replace(placeholder, value)
    its_own = any(word in line for word in ("MODEL=penstock-embed", "ENGINE="))
    return line if its_own else f"{line} ENGINE=simulated"


def answer_of(url: str, question: dict[str, Any], trusted: ssl.SSLContext) -> dict[str, Any]:
    """What a client without a key is answered."""
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(url, json.dumps(question).encode(), headers)
    with urllib.request.urlopen(request, timeout=30, context=trusted) as reply:
        answer: dict[str, Any] = json.load(reply)
    return answer


@pytest.mark.parametrize("line", LINES)
def test_a_line_of_the_table_starts_and_answers(
    line: str, tmp_path: Path, provider: ProviderServer
) -> None:
    own_address = free_address()
    key = tmp_path / "key.pem"
    key.touch(mode=0o600)
    key.write_bytes((TLS / "server.key").read_bytes())
    values = {
        "path-or-hub-id": str(shipped("penstock-mini")),
        "chain.pem": str(TLS / "server.pem"),
        "--tls-key key.pem": f"--tls-key {key}",
        "api_key_env=OPENAI_API_KEY": f"api_key_env=OPENAI_API_KEY base_url={provider.url}",
        "0.0.0.0:9000": own_address.replace("127.0.0.1", "0.0.0.0"),
        "/var/lib/penstock": str(tmp_path / "data"),
    }
    system = Made(tmp_path, filled_in(line, values), {"OPENAI_API_KEY": openai_server.KEY})
    try:
        eventually(
            lambda: "Ctrl-C" in system.log.read_text() or system.process.poll() is not None,
            within=150,
            what="the snippets",
        )
        assert system.process.poll() is None, system.output()
        address = own_address if "9000" in line else f"127.0.0.1:{system.gateway_port}"
        scheme = "https" if "--tls-cert" in line else "http"
        trusted = ssl.create_default_context(cafile=str(TLS / "ca.pem"))
        embeds = "penstock-embed" in line
        path = "embeddings" if embeds else "chat/completions"
        question = {"input": "Who are you?"} if embeds else QUESTION
        answer = answer_of(f"{scheme}://{address}/v1/{path}", question, trusted)
        assert answer["data"] if embeds else answer["choices"]
        system.end()
    finally:
        system.destroy()


def test_the_table_is_read() -> None:
    assert len(LINES) >= 9
