"""Requests are recorded between real processes, exported, sent once more, and forgotten; and a
shadow shows its worst pairs, and leaves nothing of them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.e2e.system import PENSTOCK, System, eventually, running
from tests.e2e.verbs import penstock

WORD = "heliotrope"  # stands in every prompt
MAIL = "ada@example.org"  # likewise, and must never be written
PASSWORD = "rosebud"  # likewise, under a key that the operator names
REFUSAL = "I'm sorry, but I can't help with that."
NUMBERS = count()
SETTINGS = "tokens_per_second=400 answer_tokens=10 per_request=1"


@pytest.fixture(scope="module")
def system(folder: Path) -> Iterator[System]:
    """A deployment, and a provider that refuses."""
    rules = folder / "redaction.json"
    rules.write_text(json.dumps({"keys": ["password"]}))
    environment = pytest.MonkeyPatch()
    environment.setenv("PENSTOCK_REDACTION", str(rules))
    options = ("--engine", "simulated", "--name", "sim", "--engine-args", SETTINGS)
    with running(folder, *options, within=60) as system:
        spec = {"engine": "canned", "model": "sorry", "engine_args": {"text": REFUSAL}}
        system.change("PUT", "deployments/refuser", spec)
        eventually(lambda: len(system.replicas()) == 2, within=30, what="both serve")
        yield system
    environment.undo()


def record(system: System, *words: str) -> str:
    """What `penstock record` prints."""
    return penstock("record", *words, "--data-dir", str(system.data))


def ask(system: System, times: int = 1) -> None:
    """Whole answers to questions of conversations of their own, by the SDK."""
    client = openai.OpenAI(base_url=system.base_url, api_key="none", max_retries=0, timeout=10)
    for _ in range(times):
        question = f"{WORD} of {MAIL}: what is {next(NUMBERS)}?"
        answer = client.chat.completions.create(
            model="sim",
            messages=[{"role": "user", "content": question}],
            metadata={"password": PASSWORD},
        )
        assert answer.choices[0].finish_reason


def on_disk(system: System) -> bytes:
    files = [each for each in system.data.rglob("*") if each.is_file()]
    return b"".join(each.read_bytes() for each in files)


def state(system: System) -> dict[str, Any]:
    return dict(system.admin("recordings/monday"))


def test_requests_are_recorded_exported_sent_once_more_and_forgotten(
    system: System, tmp_path: Path
) -> None:
    words = ("start", "monday", "sim", "share_permille=1000", "until.requests=8")
    assert record(system, *words) == "recording monday is started: redacted requests of sim\n"

    def has_all() -> bool:
        ask(system, 2)
        return bool(state(system)["state"] == "ended")

    eventually(has_all, within=30, what="eight requests")
    assert state(system)["message"] == "8 requests are recorded"
    file = tmp_path / "monday.jsonl"
    file.write_text(record(system, "export", "monday"))
    header, *requests = map(json.loads, file.read_text().splitlines())
    assert (len(requests), "key password" in header["redacted"]) == (8, True)
    for each in requests:
        text = each["body"]["messages"][0]["content"]
        assert text.startswith(f"{WORD} of [e-mail address]: what is ")
        assert each["body"]["metadata"] == {"password": "[key password]"}
        assert each["answered"]["status"] == 200
        assert each["answered"]["usage"]["completion_tokens"] > 0
    assert WORD.encode() in on_disk(system)
    assert MAIL.encode() not in on_disk(system)
    assert PASSWORD.encode() not in on_disk(system)
    replay = [str(PENSTOCK), "replay", str(file), "--speed", "max", "--target", system.gateway_url]
    replay += ["--out", str(tmp_path / "replay"), "--strict"]
    replayed = subprocess.run(replay, capture_output=True, text=True, timeout=60, check=True).stdout
    assert "8" in replayed
    record(system, "delete", "monday", "--yes")
    eventually(lambda: WORD.encode() not in on_disk(system), within=10, what="it is forgotten")


def test_a_recording_that_is_stopped_records_nothing_more(system: System) -> None:
    record(system, "start", "monday", "sim", "share_permille=1000")

    def has_some() -> bool:
        ask(system)
        return bool(state(system)["requests"])

    eventually(has_some, within=30, what="a request")
    assert "somebody stopped it" in record(system, "show", "monday") + record(
        *(system, "stop", "monday")
    ) + record(system, "show", "monday")

    def is_still() -> bool:
        before = state(system)["requests"]
        ask(system, 3)
        return bool(state(system)["requests"] == before)

    eventually(is_still, within=20, what="nothing more is recorded")
    record(system, "delete", "monday", "--yes")


def test_a_shadow_shows_its_worst_pairs_and_leaves_nothing_of_them(system: System) -> None:
    asked = {"name": "try", "primary": "sim", "candidate": "refuser", "share_permille": 1000}
    system.change("POST", "shadows", {**asked, "record": "redacted", "usd_per_day": 1})

    def worst() -> list[dict[str, Any]]:
        ask(system, 2)
        found: dict[str, Any] = system.admin("shadows/try/report")
        assert MAIL not in found["html"] + found["markdown"]
        return list((found["report"]["records"] or {"worst": []})["worst"])

    first = eventually(worst, within=30, what="a pair that is worse")[0]
    assert (first["gate"], first["candidate"]) == ("refusal", REFUSAL)
    assert first["asked"].startswith(f"{WORD} of [e-mail address]")
    assert first["primary"]
    assert WORD.encode() in on_disk(system)
    assert MAIL.encode() not in on_disk(system)
    system.change("DELETE", "shadows/try")
    eventually(lambda: WORD.encode() not in on_disk(system), within=10, what="it is forgotten")
