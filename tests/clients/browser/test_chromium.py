"""A page in Chromium that comes from another origin than the gateway, as `--cors-origin` allows."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.backstage import Backstage, backstage
from tests.clients.questions import LONG_TOOL, WEATHER, WEATHER_RESULT, WEATHER_TOLD, WEATHER_TOOL
from tests.clients.served import LOADING, MODEL, Served

pytestmark = pytest.mark.vllm

CLIENTS = Path(__file__).resolve().parents[1]
# One that is let in from the tests' container, and asks nobody else for anything.
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--no-proxy-server",
]


@pytest.fixture(scope="module")
def stage(served: Served) -> Iterator[Backstage]:
    """The page's own origin, and what the page may ask there."""
    deeds = {
        "given": lambda: {
            "baseURL": served.base_url,
            "model": MODEL,
            "loading": LOADING,
            "weather": WEATHER,
            "tool": WEATHER_TOOL,
            "longTool": LONG_TOOL,
            "result": WEATHER_RESULT,
        },
        "lose-replica": served.lose_replica,
        "answers-again": served.wait_until_it_answers,
        "idle": served.wait_until_idle,
        "last-settled": served.last_settled,
    }
    with backstage(served.page_port, deeds, CLIENTS) as stage:
        yield stage


@pytest.fixture
def page(stage: Backstage, tmp_path: Path) -> Iterator[Any]:
    """Opens the page to do something, and gives what it told."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    assert browser, "no chromium: `make test-clients` installs it"
    running: list[subprocess.Popen[bytes]] = []
    log = tmp_path / "chromium.log"

    def open_page(deed: str) -> Any:
        stage.has_told.clear()
        url = f"{stage.url}/browser/page.html?do={deed}"
        own = ["--enable-logging=stderr", f"--user-data-dir={tmp_path}", url]
        with log.open("wb") as out:
            running.append(subprocess.Popen([browser, *FLAGS, *own], stdout=out, stderr=out))
        assert stage.has_told.wait(60), "the page told nothing:\n" + log.read_text()[-3000:]
        return stage.told[deed]

    yield open_page
    for process in running:
        process.terminate()
        process.wait(timeout=20)


def test_a_page_that_stops_half_way_leaves_the_engine_idle(page: Any) -> None:
    stopped = page("stops")
    assert stopped["seen"] == 5, stopped
    assert stopped["settled"]["outcome"] == "cancelled"


def test_a_page_that_stops_within_a_call_leaves_the_engine_idle(page: Any) -> None:
    stopped = page("stopsInCall")
    assert stopped["seen"] == 5, stopped
    assert stopped["settled"]["outcome"] == "cancelled"


def test_a_page_streams_the_call_that_it_demands(page: Any) -> None:
    assert page("calls") == {"name": "get_weather", "args": {"city": "Paris"}}


def test_a_page_goes_from_the_call_to_the_words(page: Any) -> None:
    assert page("loop") == {"text": WEATHER_TOLD}


def test_a_page_reads_every_error_and_its_headers(page: Any) -> None:
    errors = page("errors")
    assert {name: (each["status"], each["code"]) for name, each in errors.items()} == {
        "unknown": (404, "model_not_found"),
        "wrong": (400, errors["wrong"]["code"]),
        "long": (400, "context_length_exceeded"),
        "loading": (503, "model_loading"),
        "nowhere": (404, "not_found"),
    }
    assert int(errors["loading"]["retryAfter"]) >= 1
    assert all(each["requestID"] for each in errors.values())


def test_a_page_is_told_in_the_stream_that_its_replica_was_lost(page: Any) -> None:
    lost = page("lost")
    assert lost, "the answer looked whole"
    assert (lost.get("kind"), lost.get("code")) == ("APIError", "upstream_error")
    assert lost.get("requestID")
