"""A whole system as a platform sees it that starts and restarts containers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.system import System, eventually
from tests.fakes.nvml import nvml_in

CHAT = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 4}


def test_it_is_alive_while_it_loads_serves_invocations_and_dies_with_an_accelerator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = tmp_path / "lost"
    nvml_in(tmp_path)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    monkeypatch.setenv("FAKE_NVML_LOST", str(lost))
    system = System(tmp_path, "--engine", "simulated", "--name", "sim")
    try:
        with httpx.Client(base_url=system.gateway_url, timeout=5) as client:
            assert (
                eventually(lambda: _status(client, "/ping"), within=60, what="an answer") == 200
            ), "also before there is anything to serve"
            eventually(lambda: _status(client, "/ready") == 200, within=60, what="it serves")

            answer = client.post("/invocations", json=CHAT)
            assert answer.json()["object"] == "chat.completion", answer.text
            answer = client.post("/invocations", json={"prompt": "hi", "max_tokens": 4})
            assert answer.json()["object"] == "text_completion", answer.text

            checks = eventually(lambda: _checks(client), within=60, what="all have answered")
            assert [check["ok"] for check in checks] == [True], checks

            lost.touch()
            eventually(lambda: _status(client, "/ping") == 503, within=60, what="it is told")
            assert "GPU-1" in client.get("/ping").text
            assert _status(client, "/livez") == _status(client, "/ready") == 200
            assert client.post("/invocations", json=CHAT).status_code == 200
            lost.unlink()
            eventually(lambda: _status(client, "/ping") == 200, within=60, what="it is back")
        system.stop()
    finally:
        system.destroy()


def _status(client: httpx.Client, path: str) -> int:
    try:
        return client.get(path).status_code
    except httpx.HTTPError:
        return 0


def _checks(client: httpx.Client) -> list[dict[str, Any]] | None:
    (sim,) = client.get("/health/deep").json()["deployments"]
    checks: list[dict[str, Any]] = sim["checks"]
    return checks if checks and all(check["ok"] is not None for check in checks) else None
