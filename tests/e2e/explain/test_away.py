"""Gateways and heads that go, stand still and come back: who answers says so, and who does not is
named with the reason."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
import time
import urllib.error
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from tests.e2e import verbs
from tests.e2e.explained import BUDGET, Explained
from tests.e2e.system import PENSTOCK, eventually

WITHIN: Final = 3.0  # seconds: two, and a little for who asks
EACH: Final = 8  # requests
Json = dict[str, Any]


class Following:
    """`penstock requests -f`, as somebody leaves it running."""

    def __init__(self, at: Explained, out: Path) -> None:
        self._out = out
        with out.open("wb") as file, out.with_suffix(".err").open("wb") as errors:
            command = [str(PENSTOCK), "requests", "-f", "--json", "--last", "1000", *at.where]
            self._process = subprocess.Popen(command, stdout=file, stderr=errors)

    def ids(self) -> list[str]:
        """What it has shown so far."""
        lines = self._out.read_text().splitlines(keepends=True)
        return [json.loads(line)["request_id"] for line in lines if line.endswith("\n")]

    @property
    def said(self) -> str:
        """What it has complained of."""
        return self._out.with_suffix(".err").read_text()

    def end(self) -> None:
        """Not as Ctrl-C does: where tests are a background job of a script, SIGINT is ignored."""
        self._process.terminate()
        self._process.wait(timeout=20)


@pytest.fixture(scope="module")
def following(on_explained: Explained, folder: Path) -> Iterator[Following]:
    """While all of these tests run."""
    found = Following(on_explained, folder / "followed")
    first = on_explained.ask().id
    eventually(lambda: first in found.ids(), within=20, what="the first that is followed")
    yield found
    found.end()


@contextmanager
def tail(at: Explained) -> Iterator[list[tuple[str, Any]]]:
    """What the API tells a follower: each event's name and what it says."""
    told: list[tuple[str, Any]] = []
    url = f"http://127.0.0.1:{at.system.admin_port}/admin/v1/requests/tail"
    headers = {"authorization": f"Bearer {at.system.admin_token}"}
    with (
        httpx.Client(trust_env=False, timeout=30) as client,
        client.stream("GET", url, headers=headers) as reply,
    ):
        reading = threading.Thread(target=_read, args=(reply, told), daemon=True)
        reading.start()
        eventually(lambda: told, within=10, what="who tells")
        yield told


def _read(reply: httpx.Response, told: list[tuple[str, Any]]) -> None:
    name = ""
    try:
        for line in reply.iter_lines():
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                told.append((name, json.loads(line.removeprefix("data: "))))
                name = ""
    except (httpx.HTTPError, httpx.StreamError):
        return


def test_the_gateway_keeps_as_much_as_serve_was_told(on_explained: Explained) -> None:
    (own,) = on_explained.system.processes("penstock-gateway", f"--explain-budget-bytes {BUDGET}")
    assert own.pid == next(
        g["pid"] for g in on_explained.system.admin("gateways") if g["id"] == "gw-1"
    )


def test_pages_over_two_gateways_lose_nothing_and_tell_nothing_twice(
    on_explained: Explained, following: Following
) -> None:
    at = on_explained
    asked = [at.ask(port=port).id for _ in range(EACH) for port in at.fleet.ports]
    whole = at.listed()
    pages: list[list[str]] = []
    after = ""
    while True:
        page = at.system.admin(f"requests?limit=5{after}")
        pages.append([each["request_id"] for each in page["requests"]])
        if not page["next"]:
            break
        after = f"&after={page['next']}"
    found = [each for page in pages for each in page]
    assert found == whole
    assert set(asked) <= set(found)
    assert len(found) == len(set(found)) > 3 * 5
    gateways = {each["gateway"] for each in at.system.admin("requests?limit=1000")["requests"]}
    assert gateways == {"gw-1", "gw-2"}


def test_a_gateway_that_stands_still_is_named_and_the_other_answers_in_time(
    on_explained: Explained, following: Following
) -> None:
    at = on_explained
    here, there = (at.ask(port=port).id for port in at.fleet.ports)
    stopped = at.fleet.others[0].pid
    os.kill(stopped, signal.SIGSTOP)
    try:
        with ThreadPoolExecutor(2) as asking:
            began = time.monotonic()
            listing = asking.submit(at.system.admin, "requests?limit=1000")
            finding = asking.submit(at.found, here)
            page, found = listing.result(), finding.result()
            assert time.monotonic() - began < WITHIN
        assert here in [each["request_id"] for each in page["requests"]]
        assert found["record"]["request_id"] == here
        for told in (page, found):
            (silent,) = (each for each in told["gateways"] if not each["answered"])
            assert (silent["id"], silent["detail"]) == ("gw-2", "it did not answer within 2 s")
        missing = verbs.told("explain", there, *at.where)
        assert missing.exit_code == 1
        assert "gw-1 keeps those since" in missing.stderr
        assert "gw-2: it did not answer within 2 s" in missing.stderr
    finally:
        os.kill(stopped, signal.SIGCONT)
    eventually(lambda: at.found(there), within=10, what="the other one again")


def test_what_gateways_keep_is_told_again_after_the_head_was_killed(
    on_explained: Explained, following: Following
) -> None:
    at = on_explained
    kept = [at.ask(port=port).id for port in at.fleet.ports]
    with at.fleet.without_a_head():
        kept += [at.ask(port=port).id for port in at.fleet.ports]
        nobody = verbs.told("explain", kept[0], *at.where)
        assert nobody.exit_code == 1
        assert "head" in nobody.stderr
    for each in kept:
        eventually(lambda each=each: at.found(each), within=10, what=each)  # type: ignore[misc]
    eventually(lambda: set(kept) <= set(following.ids()), within=20, what="all that had ended")


def test_a_gateway_that_was_killed_has_forgotten_and_the_head_says_so(
    on_explained: Explained, following: Following
) -> None:
    at = on_explained
    lost, kept = (at.ask(port=port).id for port in at.fleet.ports)
    own = next(g for g in at.system.admin("gateways") if g["id"] == "gw-1")
    eventually(lambda: lost in following.ids(), within=10, what="it is followed")
    with tail(at) as told:
        at.system.kill(own["pid"])
        gone = eventually(
            lambda: [g for name, each in told if name == "gateways" for g in each
                     if g["id"] == "gw-1" and not g["answered"]],
            within=10, what="who does not tell any more",
        )  # fmt: skip
        assert gone
        assert gone[0]["detail"]
        again = eventually(lambda: _answered(at), within=20, what="the next gateway")
        eventually(lambda: at.found(again or ""), within=10, what="what the next one keeps")
        eventually(
            lambda: again in [each["request_id"] for name, each in told if not name],
            within=10,
            what="what the next one tells",
        )
    assert at.found(kept)["gateway"] == "gw-2"
    with pytest.raises(urllib.error.HTTPError) as caught:
        at.found(lost)
    why = json.load(caught.value)["detail"]
    assert f"no gateway keeps a request '{lost}'" in why
    assert re.search(r"gw-1 keeps those since \S+ \S+ UTC \(it was started at \S+ \S+ UTC\)", why)
    assert why in " ".join(verbs.told("explain", lost, *at.where).stderr.split())
    assert lost not in at.listed()


def _answered(at: Explained) -> str:
    """The id of a request, once a gateway is there."""
    try:
        return at.ask().id
    except httpx.TransportError:
        return ""


def test_who_follows_all_the_while_has_seen_each_request_once(
    on_explained: Explained, following: Following
) -> None:
    last = on_explained.ask().id
    eventually(lambda: last in following.ids(), within=20, what="the last")
    shown = following.ids()
    assert len(shown) == len(set(shown))
    assert set(on_explained.listed()) <= set(shown)
    assert "gw-1" in following.said
