"""Adapters from registration to answer, through real processes: never the wrong weights."""

from __future__ import annotations

import asyncio
import json
import shutil
import urllib.error
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.adapter_traffic import ask, client_of, made, own_words, register, traffic
from tests.e2e.system import System, eventually, running

NAMES = [f"a@{number}" for number in range(1, 9)]


@pytest.fixture(scope="module")
def system(folder: Path) -> Iterator[System]:
    """Two simulated replicas of two slots each, and eight registered adapters."""
    settings = "tokens_per_second=2000 answer_tokens=8 adapter_load_ms=30"
    options = ("--engine", "simulated", "--name", "sim", "--max-adapters", "2")
    none = ("--adapter", f"first=first@1={made(folder, 'first@1')}")
    with running(folder, *options, *none, "--engine-args", settings, replicas=2) as system:
        system.change("DELETE", "aliases/sim/first")
        for name in NAMES:
            register(system, "sim", name, made(folder, name))
        yield system


def name_it(system: System, target: str, **more: Any) -> None:
    """The alias sim:moved names this version."""
    system.change("PUT", "aliases/sim/moved", {"target": target, **more})


def pids(system: System) -> set[int]:
    return {replica["pid"] for replica in system.replicas()}


async def test_an_alias_that_moves_back_and_forth_answers_as_its_header_says(
    system: System,
) -> None:
    before = pids(system)
    async with client_of(system) as client:
        words = await own_words(client, "sim", ["a@1", "a@2"])
        name_it(system, "a@1")
        async with traffic(client, ["sim:moved"], per_second=200) as found:
            for target in ["a@2", "a@1"] * 5:
                await asyncio.to_thread(name_it, system, target)
                fresh = [await ask(client, "sim:moved") for _ in range(4)]
                assert {answer.version for answer in fresh} == {target}
                await found.more(40)
    assert [a for a in found.answers if a.status != 200] == []
    assert [a for a in found.answers if a.text != words[a.version]] == []
    assert {a.version for a in found.answers} == {"a@1", "a@2"}
    assert pids(system) == before


async def test_eight_adapters_over_two_slots_all_answer_from_their_own_weights(
    system: System,
) -> None:
    before = pids(system)
    async with client_of(system) as client:
        words = await own_words(client, "sim", NAMES)
        plain = (await ask(client, "sim")).text
        models = ["sim", *(f"sim:{name}" for name in NAMES)]
        async with traffic(client, models, per_second=40) as found:
            await found.more(160)
    assert [a for a in found.answers if a.status != 200] == []
    assert [a for a in found.answers if a.text != words.get(a.version, plain)] == []
    assert {a.version for a in found.answers} == {"", *NAMES}
    assert pids(system) == before
    for replica in system.replicas():
        assert len(replica["adapters"]) <= 2


async def test_a_split_gives_a_session_one_version_and_both_their_share(system: System) -> None:
    split = {"split": {"a@1": 3, "a@2": 1}}
    await asyncio.to_thread(system.change, "PUT", "aliases/sim/moved", split)
    async with client_of(system) as client:
        body = {"model": "sim:moved", "prompt": "Hi", "max_tokens": 1}

        async def version(session: str) -> str:
            headers = {"x-penstock-session": session}
            reply = await client.post("/completions", json=body, headers=headers)
            assert reply.status_code == 200, reply.text
            return str(reply.headers["x-penstock-adapter-version"])

        versions = {}
        for number in range(60):
            versions[number] = await version(f"session {number}")
        for number in range(0, 60, 7):
            assert await version(f"session {number}") == versions[number]
    counts = [list(versions.values()).count(name) for name in ("a@1", "a@2")]
    assert 30 <= counts[0] <= 56, counts


async def test_a_stream_ends_under_the_version_that_it_began_with(system: System) -> None:
    name_it(system, "a@1")
    async with client_of(system) as client:
        words = (await ask(client, "sim:a@1", "A long one")).text
        body = {"model": "sim:moved", "prompt": "A long one", "max_tokens": 3000, "stream": True}
        async with client.stream("POST", "/completions", json=body) as reply:
            lines = reply.aiter_lines()
            first = await anext(lines)
            await asyncio.to_thread(name_it, system, "a@2")
            text = "".join(
                [_text(first), *[_text(line) async for line in lines if line.startswith("data: {")]]
            )
        assert reply.headers["x-penstock-adapter-version"] == "a@1"
        assert text.startswith(words)
        assert (await ask(client, "sim:moved")).version == "a@2"


def _text(line: str) -> str:
    choices = json.loads(line.removeprefix("data: "))["choices"]
    return str(choices[0]["text"]) if choices else ""


async def test_names_that_nobody_registered_are_404_and_never_the_base_model(
    system: System,
) -> None:
    async with client_of(system) as client:
        for model in ("sim:none", "sim:a@99", "sim:a", "none:a@1"):
            answer = await ask(client, model)
            assert answer.status == 404, answer
            assert "model_not_found" in answer.text


async def test_a_registered_adapter_outlives_its_source(system: System, tmp_path: Path) -> None:
    register(system, "sim", "gone@1", made(tmp_path, "gone@1"))
    shutil.rmtree(tmp_path / "adapters")
    async with client_of(system) as client:
        assert (await ask(client, "sim:gone@1")).version == "gone@1"
        for name in NAMES:  # all slots are others' meanwhile
            assert (await ask(client, f"sim:{name}")).status == 200
        assert (await ask(client, "sim:gone@1")).version == "gone@1"


async def test_bytes_that_rot_on_a_node_are_fetched_again(system: System, tmp_path: Path) -> None:
    digest = register(system, "sim", "rots@1", made(tmp_path, "rots@1"))["digest"]
    async with client_of(system) as client:
        words = (await ask(client, "sim:rots@1")).text
        for name in NAMES:
            await ask(client, f"sim:{name}")
        for weights in system.data.rglob(f"{digest}/adapter_model.safetensors"):
            if "node" in str(weights.relative_to(system.data)):
                weights.chmod(0o644)
                weights.write_bytes(b"rotten" + weights.read_bytes()[6:])
        again = await ask(client, "sim:rots@1")
        assert (again.status, again.text) == (200, words)


async def test_a_killed_replica_comes_back_with_what_it_is_to_keep(system: System) -> None:
    name_it(system, "a@3", pinned=True)
    eventually(
        lambda: all("a@3" in replica["adapters"] for replica in system.replicas()),
        within=20,
        what="a@3 on both replicas",
    )
    victim = system.replicas()[0]
    system.kill(victim["pid"])

    def again() -> list[dict[str, Any]]:
        alike = (r for r in system.replicas() if r["id"] == victim["id"])
        return [r for r in alike if r["pid"] != victim["pid"]]

    (found,) = eventually(again, within=40, what="its next process is ready")
    assert "a@3" in found["adapters"]


@pytest.mark.parametrize("role", ["head", "node", "replica"])
async def test_a_kill_while_adapters_are_loaded_serves_nothing_wrongly(
    system: System, role: str
) -> None:
    name_it(system, "a@1", preload=0)
    async with client_of(system) as client:
        words = await own_words(client, "sim", NAMES)
        async with traffic(client, [f"sim:{name}" for name in NAMES], per_second=30) as found:
            await found.more(30)
            victim = system.replicas()[0]["pid"] if role == "replica" else system.pid_of(role)
            system.kill(victim)
            await found.more(90)
        await asyncio.to_thread(system.wait_ready, 2, within=40)
        answered = [a for a in found.answers if a.status == 200]
        assert len(answered) > 50
        assert [a for a in answered if a.text != words[a.version]] == []
        lost = [a for a in found.answers if a.status != 200]
        assert all(a.status in (502, 503) for a in lost), lost  # each may be sent again
        if role != "replica":
            assert lost == []
        assert await own_words(client, "sim", NAMES) == words


async def test_a_removed_version_is_forgotten_everywhere(system: System, tmp_path: Path) -> None:
    register(system, "sim", "removed@1", made(tmp_path, "removed@1"))
    async with client_of(system) as client:
        assert (await ask(client, "sim:removed@1")).status == 200
        await asyncio.to_thread(system.change, "DELETE", "adapters/removed@1")
        eventually(
            lambda: all("removed@1" not in r["adapters"] for r in system.replicas()),
            within=20,
            what="no replica holds removed@1",
        )
        assert (await ask(client, "sim:removed@1")).status == 404
    with pytest.raises(urllib.error.HTTPError, match="409"):
        register(system, "sim", "removed@1", made(tmp_path, "removed@1"))
