"""Shadows come to the right verdict within what was promised, on real vLLM."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.e2e.adapter_traffic import register
from tests.e2e.shadow_verdicts import (
    Judged,
    assert_equal,
    assert_worse,
    chats,
    judged,
    pids,
    signalled,
)
from tests.e2e.system import System, eventually

pytestmark = [pytest.mark.vllm, pytest.mark.long, pytest.mark.timeout(900)]

MODEL = "penstock-mini"
DATASET = Path(__file__).resolve().parents[2] / "evals" / "datasets" / "quantization.jsonl"
PROMPTS = [json.loads(line)["prompt"] for line in DATASET.read_text().splitlines()]
JSON = {"response_format": {"type": "json_object"}}
CONTENT = {"error", "finish_length", "empty", "refusal", "guardrails"}


def questions(**fields: object) -> list[dict[str, object]]:
    return chats(MODEL, PROMPTS, max_tokens=64, **fields)


@pytest.fixture(scope="module")
def slow(real: System, folder: Path) -> str:
    """A deployment that says the same as the model, and takes longer."""
    from tests.fakes.slow_model import slow_model  # it needs torch, which nobody else here does

    spec = {"name": "slow", "model": str(slow_model(folder / "slow", idle_layers=12))}
    real.change("POST", "deployments", spec)
    eventually(lambda: pids(real, "slow"), within=180, what="the slow one is ready")
    return "slow"


def adapter(system: System, folder: Path, name: str, token: str, raised: float) -> str:
    """A candidate: the model with an adapter that raises the token's logit."""
    from tests.fakes.bent_adapter import bent_adapter  # likewise

    made = bent_adapter(folder / name, token, raised, PROMPTS[:8])
    register(system, MODEL, f"{name}@1", made)
    return f"{MODEL}:{name}@1"


async def test_a_model_beside_itself_is_equal(real: System) -> None:
    spec = {"primary": MODEL, "candidate": MODEL}
    found = await judged(real, "itself", spec, questions(), within=600)
    assert_equal(found, *CONTENT)


async def test_an_adapter_that_ends_at_once_is_worse_by_empty_answers(
    real: System, folder: Path
) -> None:
    spec = {"primary": MODEL, "candidate": adapter(real, folder, "brief", "<|end|>", 12)}
    assert_worse(await judged(real, "ends-early", spec, questions()), "empty")


async def test_an_adapter_that_finds_no_end_is_worse_by_json_and_by_length(
    real: System, folder: Path
) -> None:
    """vLLM holds it to the grammar of JSON: what it cannot be held to is to end in time."""
    candidate = adapter(real, folder, "endless", "\u0120river", 20)
    spec = {"primary": MODEL, "candidate": candidate, "checks": ["error", "json"]}
    assert_worse(await judged(real, "breaks-json", spec, questions(**JSON)), "json")
    spec["checks"] = []
    assert_worse(await judged(real, "ends-late", spec, questions(**JSON)), "finish_length")


async def test_a_provider_that_says_the_same_to_everything_is_worse(real: System) -> None:
    canned = {"engine": "canned", "model": "sorry", "engine_args": {"text": "Back in an hour."}}
    real.change("POST", "deployments", {"name": "sorry", **canned})
    eventually(lambda: pids(real, "sorry"), within=60, what="the provider is ready")
    spec = {"primary": MODEL, "candidate": "sorry", "usd_per_day": 1}
    assert_worse(await judged(real, "canned", spec, questions(**JSON)), "json")


async def test_a_slower_deployment_is_equal_in_content_and_worse_in_its_times(
    real: System, slow: str
) -> None:
    def enough(found: Judged) -> bool:
        return {"tpot", "total"} <= found.gates("worse") and found.gates("equal") >= CONTENT

    spec = {"primary": MODEL, "candidate": slow, "margins": {"guardrails": 0.02}}
    found = await judged(real, "slow", spec, questions(), enough=enough, within=600)
    found.tell(found.promised("error", "equal"))
    assert found.verdict == "worse"
    assert not found.gates("worse") & CONTENT
    assert found.sessions <= found.promised("error", "equal")
    assert found.check("exact")["verdict"] == "equal"


async def test_a_candidate_whose_engine_is_killed_is_worse_by_errors_and_no_client_notices(
    real: System, slow: str
) -> None:
    spec = {"primary": MODEL, "candidate": slow}
    async with signalled(real, slow, signal.SIGKILL):
        assert_worse(await judged(real, "killed", spec, questions(), within=600), "error")
