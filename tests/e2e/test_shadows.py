"""A shadow between real processes: clients notice nothing of it, nobody's death changes what was
counted, and nothing is kept."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.e2e import verbs
from tests.e2e.flow import WHOLE, flowing
from tests.e2e.system import System, eventually, running

SECRET = "heliotrope"  # stands in every prompt, and must stand nowhere else
NUMBERS = count()


@pytest.fixture(scope="module")
def system(folder: Path) -> Iterator[System]:
    """A quick deployment, and a slow one of half a second for each answer."""
    settings = "tokens_per_second=400 answer_tokens=10 per_request=1"
    options = ("--engine", "simulated", "--name", "sim", "--engine-args", settings)
    with running(folder, *options, within=60) as system:
        slow = {"tokens_per_second": 20, "answer_tokens": 10, "per_request": 1}
        spec = {"engine": "simulated", "model": "tiny", "engine_args": slow}
        system.change("PUT", "deployments/small", spec)
        eventually(lambda: len(system.replicas()) == 2, within=30, what="both serve")
        yield system


@pytest.fixture
def shadow(system: System) -> Iterator[str]:
    """The name of one over both; it is deleted at the end."""
    told = penstock(system, "create", "try", "sim", "small", "share_permille=1000")
    assert told.startswith("shadow try is made: small beside sim\n")
    yield "try"
    penstock(system, "delete", "try", "--yes")


def penstock(system: System, *words: str) -> str:
    """What `penstock shadow` prints."""
    return verbs.penstock("shadow", *words, "--data-dir", str(system.data))


def ask(system: System, times: int = 1) -> None:
    """Whole answers to questions of conversations of their own, by the SDK."""
    client = openai.OpenAI(base_url=system.base_url, api_key="none", max_retries=0, timeout=10)
    for _ in range(times):
        question = f"{SECRET}: what is {next(NUMBERS)}?"
        answer = client.chat.completions.create(
            model="sim", messages=[{"role": "user", "content": question}]
        )
        assert answer.choices[0].finish_reason


def report(system: System, name: str) -> dict[str, Any]:
    found: dict[str, Any] = system.admin(f"shadows/{name}/report")["report"]
    return found


def check(found: dict[str, Any], name: str) -> dict[str, Any]:
    (one,) = (each for each in found["checks"] if each["name"] == name)
    return dict(one)


def until_pairs(system: System, name: str, pairs: int) -> dict[str, Any]:
    """The report, once it has so many; clients ask until then."""

    def has() -> dict[str, Any] | None:
        ask(system, 3)
        found = report(system, name)
        return found if found["pairs"] >= pairs else None

    found = eventually(has, within=20, what=f"{pairs} pairs")
    assert found is not None
    return found


def comparer_of(system: System) -> int:
    return int(json.loads((system.data / "comparer.json").read_text())["pid"])


def test_what_clients_ask_is_asked_of_the_candidate_and_compared(
    system: System, shadow: str
) -> None:
    found = until_pairs(system, shadow, 20)
    assert found["verdict"] == "undecided"
    assert found["sessions"] == found["pairs"]
    eventually(
        lambda: report(system, shadow)["outcomes"]["paired"] >= 20,
        within=5,
        what="gateways tell what became of requests",
    )
    assert check(found, "error")["difference"] == 0
    again = eventually(lambda: report(system, shadow)["self_pairs"], within=5, what="a self arm")
    assert again < found["pairs"]
    state = system.admin(f"shadows/{shadow}")
    assert (state["state"], state["message"]) == ("running", "")
    assert "undecided: small beside sim" in penstock(system, "report", shadow)
    assert "<h1>Undecided: small beside sim</h1>" in penstock(system, "report", shadow, "--html")


async def test_a_candidate_that_is_killed_costs_no_client_anything_and_counts_as_an_error(
    system: System, shadow: str
) -> None:
    killed: list[int] = []

    def fails() -> bool:
        for replica in system.replicas():
            if replica["deployment"] == "small" and replica["pid"] not in killed:
                killed.append(replica["pid"])
                system.kill(replica["pid"])
        return bool(check(report(system, shadow), "error")["difference_of_all"])

    until_pairs(system, shadow, 1)
    async with flowing([system.gateway_port], "sim") as flow:
        what = "an error of the candidate"
        await asyncio.to_thread(eventually, fails, within=20, what=what)
    assert killed
    assert {each.how for each in flow.ended} == {WHOLE}
    eventually(lambda: len(system.replicas()) == 2, within=20, what="the candidate is back")


def test_a_comparer_that_is_killed_comes_back_with_what_it_had_counted(
    system: System, shadow: str
) -> None:
    before = until_pairs(system, shadow, 5)["pairs"]
    pid = comparer_of(system)
    system.kill(pid)
    ask(system, 3)
    eventually(lambda: comparer_of(system) != pid, within=10, what="another comparer")
    eventually(lambda: report(system, shadow)["pairs"] >= before, within=10, what="its counts")
    until_pairs(system, shadow, before + 5)
    assert system.admin("status")["problems"] == []


def test_a_shadow_that_is_paused_repeats_nothing_until_it_is_resumed(
    system: System, shadow: str
) -> None:
    until_pairs(system, shadow, 3)
    penstock(system, "pause", shadow)
    eventually(lambda: _is_still(system, shadow), within=20, what="nothing more is repeated")
    assert "paused" in penstock(system, "list")
    penstock(system, "resume", shadow)
    until_pairs(system, shadow, report(system, shadow)["pairs"] + 3)


def test_nothing_is_left_of_a_shadow_that_is_deleted_and_no_prompt_is_ever_kept(
    system: System,
) -> None:
    made = system.change(
        "POST",
        "shadows",
        {"name": "gone", "primary": "sim", "candidate": "small", "share_permille": 1000},
    )
    until_pairs(system, "gone", 3)
    files = [each for each in system.data.rglob("*") if each.is_file()]
    assert not [each for each in files if SECRET.encode() in each.read_bytes()]
    penstock(system, "delete", "gone", "--yes")

    def kept() -> bytes:
        return b"".join(each.read_bytes() for each in system.data.glob("shadow.sqlite*"))

    eventually(lambda: made["uid"].encode() not in kept(), within=10, what="it is forgotten")
    assert system.admin("shadows") == []
    ask(system)


def _is_still(system: System, name: str) -> bool:
    """Whether what clients ask is no longer sampled."""
    before = report(system, name)["outcomes"]
    ask(system, 8)
    return bool(report(system, name)["outcomes"] == before)
