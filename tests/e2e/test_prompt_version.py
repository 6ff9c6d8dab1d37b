"""Which version of its prompt a request is: wherever the request is told of, and in no metric."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from tests.e2e.system import System, eventually, running
from tests.fakes.collector import FakeCollector
from tests.fakes.ports import free_address

SENT = "v" + "é" * 40
KEPT = "v" + "é" * 31  # 63 bytes: the next letter would be cut in two
SIMULATED = ("--engine", "simulated", "--name", "sim", "--trace-sample", "1")


def answered(client: openai.OpenAI) -> str:
    """Our id of a chat that says it."""
    chats: Any = client.chat.completions.with_raw_response
    said = {"messages": [{"role": "user", "content": "Hi"}], "metadata": {"prompt_version": SENT}}
    return str(chats.create(model="sim", **said).headers["x-request-id"])


def refused(client: openai.OpenAI) -> str:
    """Of a response that says it, which a simulated engine does not make."""
    with pytest.raises(openai.BadRequestError) as error:
        client.responses.create(model="sim", input="Hi", metadata={"prompt_version": SENT})
    return error.value.response.headers["x-request-id"]


def explained(system: System, request_id: str) -> str:
    """As the head explains the request, once its gateway keeps it."""
    path = f"requests/{request_id}"
    told = eventually(lambda: system.admin(path), within=10, what="its record")
    return str(told["record"]["prompt_version"])


def logged(system: System, request_id: str) -> str:
    """As the gateway's line says it."""
    (log,) = system.data.rglob("gateway-*.log")
    (line,) = [each for each in log.read_text().splitlines() if f'"{request_id}"' in each]
    return str(json.loads(line)["prompt_version"])


def traced(collector: FakeCollector, request_id: str) -> str:
    """As the request's span says it."""

    def found() -> str | None:
        each = [told.attributes for told in collector.told]
        mine = [told for told in each if told.get("penstock.request_id") == request_id]
        return str(mine[0]["gen_ai.prompt.version"]) if mine else None

    return eventually(found, within=10, what="its span")


def test_it_is_explained_logged_and_traced_as_it_was_cut_and_labels_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = free_address()
    with FakeCollector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        with (
            running(folder, *SIMULATED, "--head-metrics", head, within=60) as system,
            openai.OpenAI(base_url=system.base_url, api_key="none", max_retries=0) as client,
        ):
            for request_id in (answered(client), refused(client)):
                assert explained(system, request_id) == KEPT
                assert logged(system, request_id) == KEPT
                assert traced(collector, request_id) == KEPT
            for address in (head, f"127.0.0.1:{system.metrics_port}"):
                page = httpx.get(f"http://{address}/metrics")
                assert page.status_code == 200
                assert not [line for line in page.text.splitlines() if "vé" in line]
