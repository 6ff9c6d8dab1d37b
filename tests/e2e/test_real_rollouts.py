"""A model on real vLLM is changed under the traffic of chats."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from tests.e2e.rollouts import changed, revisions, rolled_out, sessions, without_aliases
from tests.e2e.system import System, eventually

log = logging.getLogger(__name__)
MINI = "penstock-mini"


@pytest.mark.long
@pytest.mark.timeout(1500)
async def test_a_shorter_context_a_missing_path_and_two_undos_cost_no_request(
    real: System,
) -> None:
    eventually(lambda: "Ctrl-C" in real.log.read_text(), within=120, what="serve has all it asked")
    without_aliases(real, MINI)
    changed(real, MINI, engine_args={"max_model_len": "2048"})
    await rolled_out(real, MINI, within=300)
    stages: dict[str, Callable[[], object]] = {
        "a shorter context": lambda: changed(real, MINI, engine_args={"max_model_len": "1024"}),
        "a path that is not there": lambda: changed(real, MINI, model="/no/such/model"),
        "an undo": lambda: real.change("POST", f"deployments/{MINI}/rollback"),
        "its undo": lambda: real.change("POST", f"deployments/{MINI}/rollback"),
    }
    for name, change in stages.items():
        async with sessions(real, MINI, 20) as talking:
            change()
            real.kill(real.pid_of("head"))
            told = await rolled_out(real, MINI, within=300)
        log.warning("%s: revision %s, %d answers", name, told["revision"], talking.answers)
        assert talking.failures == [], name
        assert talking.answers > 20, name
    assert "there is no directory /no/such/model" in " ".join(
        each["cause"] for each in revisions(real, MINI)
    )
