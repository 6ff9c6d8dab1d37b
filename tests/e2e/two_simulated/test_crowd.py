"""More clients than the gateway has places for, while a real head watches over it."""

from __future__ import annotations

import asyncio
import time
import urllib.request

from tests.e2e.streams import Stream, ask, client_of, read, until
from tests.e2e.system import System, eventually, get_json
from tests.fakes.crowd import crowds

# Together more than a gateway takes by default, or than its descriptors allow where those are few.
IDLE = [9_500, 9_500]
SILENT = [2_000]
# Longer than the head waits for a sign of life before it shows a gateway as one that is silent.
WATCHED = 5.5  # seconds
TOKENS = 200  # ten seconds


def _evicted(system: System) -> float:
    """How many connections gave way to others."""
    with urllib.request.urlopen(f"http://127.0.0.1:{system.metrics_port}/metrics") as reply:
        lines = reply.read().decode().splitlines()
    [line] = [x for x in lines if x.startswith("penstock_gateway_connections_evicted_total ")]
    return float(line.split()[1])


async def test_a_crowd_that_only_waits_ends_no_stream_and_takes_nobodys_place(
    two_simulated: System,
) -> None:
    before = two_simulated.gateway()
    with crowds(two_simulated.gateway_port, IDLE, "asks"):
        async with client_of(two_simulated) as client, asyncio.TaskGroup() as group:
            streams = [Stream() for _ in range(10)]
            for stream in streams:
                simulate = {"answer_tokens": TOKENS}
                group.create_task(read(client, "sim", stream, simulate=simulate))
            await until(lambda: all(s.tokens > 2 for s in streams), within=20, what="first tokens")
            await asyncio.to_thread(_besiege, two_simulated, streams)
    assert all(s.complete and s.tokens == TOKENS for s in streams), streams
    after = two_simulated.gateway()
    assert (after["pid"], after["restarts"]) == (before["pid"], before["restarts"])


def _besiege(system: System, streams: list[Stream]) -> None:
    """Fills the gateway's last places, and looks whether all goes on for a while."""
    with crowds(system.gateway_port, SILENT):
        eventually(lambda: _evicted(system) > 0, within=20, what="as many clients as it may have")
        seen = [s.tokens for s in streams]
        until_then = time.monotonic() + WATCHED
        while time.monotonic() < until_then:
            assert get_json(f"http://127.0.0.1:{system.metrics_port}/livez")["status"] == "live"
            assert system.gateway()["state"] == "ready"
            assert asyncio.run(ask(system)), "a new client is served"
        went_on = [s.complete or s.tokens > then for s, then in zip(streams, seen, strict=True)]
        assert all(went_on), "none stands"
