"""The Node clients: each `*.test.mjs` here runs under Node's own test runner."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients import questions
from tests.clients.backstage import Backstage, backstage
from tests.clients.served import CLOUD, CLOUD_EMBEDDER, EMBEDDER, LOADING, MODEL, Served
from tests.fakes.ports import free_ports

pytestmark = pytest.mark.vllm

HERE = Path(__file__).parent
NODE = Path(sys.executable).with_name("node")
# Those of Vercel's SDK, and of openai's where there is no replica to lose.
BY_PROVIDER = [
    "ai_sdk.test.mjs",
    "ai_sdk_openai.test.mjs",
    "ai_sdk_tools.test.mjs",
    "openai.test.mjs",
    "openai_embeddings.test.mjs",
    "openai_tools.test.mjs",
]
SCRIPTS = sorted(path.name for path in HERE.glob("*.test.mjs"))


@pytest.fixture(scope="module")
def stage(served: Served) -> Iterator[Backstage]:
    """What a script asks for that only this side can do."""
    deeds = {
        "lose-replica": served.lose_replica,
        "tell-losses": lambda: served.configure(resume="off"),
        "go-on": lambda: served.configure(resume="on"),
        "wait-for-the-next": lambda: served.configure(resume_wait_ms=120_000),
        "wait-as-ever": lambda: served.configure(resume_wait_ms=10_000),
        "answers-again": served.wait_until_it_answers,
        "idle": served.wait_until_idle,
        "last-settled": served.last_settled,
    }
    with backstage(free_ports(1)[0], deeds, HERE) as stage:
        yield stage


def given(
    served: Served, stage: Backstage, model: str = MODEL, embedder: str = EMBEDDER
) -> dict[str, object]:
    """What a script needs to know of the system and of the questions."""
    return {
        "baseURL": served.base_url,
        "backstage": stage.url,
        "model": model,
        "embedder": embedder,
        "loading": LOADING,
        "question": questions.QUESTION,
        "story": questions.STORY,
        "weather": questions.WEATHER,
        "weatherOfTwo": questions.WEATHER_OF_TWO,
        "weatherTold": questions.WEATHER_TOLD,
        "person": questions.PERSON,
        "weatherTool": questions.WEATHER_TOOL,
        "weatherResult": json.loads(questions.WEATHER_RESULT),
    }


def passes(script: str, told: dict[str, object]) -> None:
    ran = subprocess.run(
        [NODE, "--test", "--test-reporter=spec", "--test-timeout=120000", script],
        cwd=HERE,
        env={**os.environ, "PENSTOCK": json.dumps(told)},
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert " pass 0\n" not in ran.stdout, ran.stdout


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_test_of_a_script_passes(served: Served, stage: Backstage, script: str) -> None:
    passes(script, given(served, stage))


@pytest.mark.parametrize("script", BY_PROVIDER)
def test_a_script_sees_no_difference_where_a_provider_answers(
    served: Served, stage: Backstage, script: str
) -> None:
    with served.by_way_of_a_provider():
        passes(script, given(served, stage, CLOUD, CLOUD_EMBEDDER))


def test_there_are_scripts() -> None:
    assert SCRIPTS
