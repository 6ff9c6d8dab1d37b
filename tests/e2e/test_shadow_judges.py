"""A shadow whose pairs a judge and an embedding deployment are asked about, between real processes:
the questions go through the gateway, as its rule's, and are paid for by nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.system import System, eventually, running
from tests.e2e.test_shadows import SECRET, ask, check, penstock, report
from tests.fakes.judging_provider import JudgingProvider
from tests.fakes.provider_server import ProviderServer

KEY_FILE = "provider.key"
LONG, SHORT = 12, 4  # tokens of the primary's answers, and of the candidate's


@dataclass
class Judged:
    """A deployment `sim`, a laconic one `small`, and the provider `cloud`."""

    system: System
    provider: JudgingProvider


@pytest.fixture(scope="module")
def judged(folder: Path) -> Iterator[Judged]:
    provider = JudgingProvider()
    settings = f"tokens_per_second=400 answer_tokens={LONG} per_request=1"
    options = ("--engine", "simulated", "--name", "sim", "--engine-args", settings)
    with ProviderServer(provider.scenario) as cloud, running(folder, *options, within=60) as system:
        (system.data / "secrets" / KEY_FILE).write_text("sk-test-of-the-judge")
        short = {"tokens_per_second": 400, "answer_tokens": SHORT, "per_request": 1}
        small = {"engine": "simulated", "model": "tiny", "engine_args": short}
        system.change("PUT", "deployments/small", small)
        provided = {
            "engine": "openai",
            "model": "gpt-fake",
            "engine_args": {"base_url": cloud.url, "api_key_file": KEY_FILE, "retries": "0"},
            "usd_per_million_input": 1.0,
        }
        system.change("PUT", "deployments/cloud", provided)
        eventually(lambda: len(system.replicas()) == 3, within=60, what="all serve")
        yield Judged(system, provider)


def until(system: System, name: str, wanted: str, pairs: int) -> dict[str, Any]:
    """The check, once it says something of so many pairs; clients ask until then."""

    def has() -> dict[str, Any] | None:
        ask(system, 3)
        found = check(report(system, name), wanted)
        return found if found["pairs"] >= pairs else None

    found = eventually(has, within=60, what=f"{pairs} pairs of {wanted}")
    assert found is not None
    return found


def test_a_judge_and_an_embedder_are_asked_through_the_gateway_for_the_rule(
    judged: Judged,
) -> None:
    system, provider = judged.system, judged.provider
    own = ("judge=cloud", "embedder=cloud", "usd_per_day=5", "self_permille=1000")
    penstock(system, "create", "judged", "sim", "small", "share_permille=1000", *own)
    liked = until(system, "judged", "judge", 10)
    meant = until(system, "judged", "semantic", 10)
    assert (liked["gate"], liked["difference"]) == (True, 1.0)
    assert not meant["gate"]
    assert meant["difference"] > 0
    shown = [each for each in provider.judged if SECRET in each.get("request", "")]
    firsts = {len(each["first"]) > len(each["second"]) for each in shown}
    assert firsts == {True, False}, "both orders are asked"
    assert all(len(texts) == 2 for texts in provider.embedded if len(texts) > 1)
    _is_paid_by_the_rule(system, system.admin("shadows/judged")["uid"])
    files = [each for each in system.data.rglob("*") if each.is_file()]
    assert not [each for each in files if SECRET.encode() in each.read_bytes()]
    penstock(system, "delete", "judged", "--yes")


def _is_paid_by_the_rule(system: System, uid: str) -> None:
    def rows() -> list[dict[str, Any]]:
        return [row for row in system.admin("usage")["rows"] if row["model"] == "cloud"]

    found = eventually(rows, within=10, what="usage of the judge")
    assert {(each["tenant"], each["key_id"]) for each in found} == {("_shadow", uid)}


def test_a_shadow_says_what_came_of_questions_that_were_not_answered(judged: Judged) -> None:
    system = judged.system
    sorry = {"engine": "canned", "model": "sorry", "engine_args": {"text": "I cannot say."}}
    system.change("PUT", "deployments/sorry", sorry)
    eventually(lambda: len(system.replicas()) == 4, within=60, what="it serves")
    own = ("judge=sorry", "embedder=small", "usd_per_day=5", "self_permille=1000")
    penstock(system, "create", "unread", "sim", "small", "share_permille=1000", *own)

    def told() -> dict[str, int] | None:
        ask(system, 3)
        found: dict[str, int] = report(system, "unread")["outcomes"]
        both = {"judge_unreadable", "embedder_not_comparable"}
        return found if both <= found.keys() else None

    eventually(told, within=60, what="why there is no verdict of theirs")
    assert check(report(system, "unread"), "judge")["verdict"] == "not made"
    assert "judge_unreadable" in penstock(system, "report", "unread")
    penstock(system, "delete", "unread", "--yes")
