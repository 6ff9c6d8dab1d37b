"""Several gateways before one head: the one that `penstock serve` starts, and others by hand."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openai

from tests.e2e.loads import Answer, Load, admin, ask_once
from tests.e2e.streams import sdk_at
from tests.e2e.system import System, eventually
from tests.fakes.gateway_process import GatewayProcess
from tests.fakes.ports import free_address

MAY_GIVE = "x-ratelimit-limit-requests"  # what the gateway that answers may give in a minute
# A share that moved by a tenth and a hundredth of the whole, or less, is not told anew.
NOT_TOLD = 0.15
# Between two looks at a door that opens or closes.
LOOK = 0.01
_names = (f"tenant-{n}" for n in itertools.count())


class Fleet:
    """The gateways of one head, by their ports; the first one is the head's own."""

    def __init__(self, system: System, folder: Path, count: int, *flags: str) -> None:
        self.system = system
        names = [f"gw-{n}" for n in range(2, count + 1)]
        self.others = [_by_hand(system, folder, name, *flags) for name in names]

    @property
    def ports(self) -> list[int]:
        """Where clients connect."""
        return [self.system.gateway_port, *(other.port for other in self.others)]

    def tenant(self, **limits: object) -> str:
        """A new tenant's id."""
        name = next(_names)
        admin(self.system, "POST", "tenants", {"id": name, **limits})
        return name

    def new_key(self, **limits: object) -> str:
        """A key of a new tenant, once every gateway knows it."""
        made = admin(self.system, "POST", f"tenants/{self.tenant(**limits)}/keys", {})
        took_effect(self.ports, made["key"], 200)
        return str(made["key"])

    def is_whole(self) -> bool:
        """Whether the head hears all of them, and the replica is ready."""
        heard = [g for g in self.system.admin("gateways") if g["state"] in ("ready", "remote")]
        return len(heard) == len(self.ports) and bool(self.system.replicas())

    @contextmanager
    def without_a_head(self) -> Iterator[None]:
        """The head is killed, and `penstock serve` is kept from starting another meanwhile."""
        serve = self.system.process.pid
        os.kill(serve, signal.SIGSTOP)
        try:
            self.system.kill(self.system.pid_of("head"))
            yield
        finally:
            os.kill(serve, signal.SIGCONT)
        eventually(self.is_whole, within=30, what="a head that hears all gateways")


@contextmanager
def fleet_of(system: System, folder: Path, count: int, *flags: str) -> Iterator[Fleet]:
    """So many gateways, of which the head knows; they end before the system does. `flags`: of all
    but the head's own."""
    fleet = Fleet(system, folder, count, *flags)
    try:
        for other in fleet.others:
            asyncio.run(other.start())
        eventually(fleet.is_whole, within=20, what=f"{count} gateways")
        yield fleet
    finally:
        for other in fleet.others:
            other.kill()


def _by_hand(system: System, folder: Path, name: str, *flags: str) -> GatewayProcess:
    data = folder / name  # not the head's: what runs on that is the head's to look after
    data.mkdir()
    return GatewayProcess(
        data, "--control", f"127.0.0.1:{system.rpc_port}", "--data-dir", str(data),
        "--id", name, "--cluster-token-file", str(system.data / "cluster.token"),
        "--metrics", free_address(), *flags,
    )  # fmt: skip


def took_effect(ports: Sequence[int], key: str, status: int) -> float:
    """Seconds until each of the gateways answers requests with this key so."""
    began = time.monotonic()

    def at(port: int) -> float:
        while status_at(port, key) != status:
            assert time.monotonic() - began < 5, f"{port} does not answer with {status}"
            time.sleep(LOOK)
        return time.monotonic() - began

    with ThreadPoolExecutor(len(ports)) as looking:
        return max(looking.map(at, ports))


def status_at(port: int, key: str) -> int:
    """Of the list of models, which counts towards no limit."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/models", headers={"authorization": f"Bearer {key}"}
    )
    try:
        with urllib.request.urlopen(request, timeout=5) as reply:
            return int(reply.status)
    except urllib.error.HTTPError as error:
        return error.code


def client_at(port: int, key: str) -> openai.AsyncOpenAI:
    """An SDK client of one gateway that shows every refusal."""
    return sdk_at(f"http://127.0.0.1:{port}/v1", key)


def limit_at(port: int, key: str) -> int:
    """How many requests a minute one gateway may give; to ask takes one of them."""

    async def asked() -> Answer:
        async with client_at(port, key) as client:
            return await ask_once(client, "how many", max_tokens=1)

    return int(asyncio.run(asked()).headers[MAY_GIVE])


def limits(ports: Sequence[int], key: str) -> list[int]:
    """What each gateway may give."""
    return [limit_at(port, key) for port in ports]


def is_even(parts: Sequence[int]) -> bool:
    """Whether they are the same, but for what is too little to be told; says where they are not."""
    mean = sum(parts) / len(parts)
    if any(abs(part - mean) > NOT_TOLD * mean for part in parts):
        raise ValueError(f"{parts} are not even")
    return True


async def flood(
    ports: Sequence[int],
    key: str,
    over: Callable[[Load], bool],
    *,
    clients: int = 2,
    **body: Any,
) -> list[Load]:
    """Asks each gateway until it is over there, whatever it answers; a load for each."""
    loads = [Load() for _ in ports]

    async def keep_asking(port: int, load: Load) -> None:
        async with client_at(port, key) as client:
            while not over(load):
                load.answers.append(await ask_once(client, "one two three", **body))

    async with asyncio.TaskGroup() as group:
        for port, load in zip(ports, loads, strict=True):
            for _ in range(clients):
                group.create_task(keep_asking(port, load))
    assert not any(load.lost for load in loads), [load.lost[:3] for load in loads]
    return loads


async def ask_at_once(ports: Sequence[int], key: str, count: int, **body: Any) -> list[Load]:
    """So many requests at the same moment to each gateway; a load for each."""
    loads = [Load() for _ in ports]

    async def ask(port: int, load: Load) -> None:
        async with client_at(port, key) as client:
            load.answers.append(await ask_once(client, "one two three", **body))

    async with asyncio.TaskGroup() as group:
        for port, load in zip(ports, loads, strict=True):
            for _ in range(count):
                group.create_task(ask(port, load))
    return loads


def is_refused(load: Load) -> bool:
    """Whether any of its requests was."""
    return bool(load.refused)


def for_seconds(seconds: float) -> Callable[[Load], bool]:
    """So long, whatever comes of it."""
    end = time.monotonic() + seconds
    return lambda _: time.monotonic() >= end
