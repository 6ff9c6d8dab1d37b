"""Changes of what replicas are made of, under traffic: nobody is refused, what fails goes back."""

from __future__ import annotations

from tests.e2e.rollouts import changed, revisions, rolled_out, sessions, without_aliases
from tests.e2e.system import System
from tests.e2e.verbs import penstock

FAST = {"update": {"min_ready_ms": 500}}


async def test_a_change_and_its_undo_cost_no_request_also_where_the_head_is_killed(
    two_simulated: System,
) -> None:
    system = two_simulated
    system.change("PATCH", "deployments/sim/settings", FAST)
    before = await rolled_out(system, "sim", within=60)
    async with sessions(system, "sim", 8) as talking:
        spec = system.admin("deployments/sim")["spec"]
        changed(system, "sim", engine_args={**spec["engine_args"], "tokens_per_second": "40"})
        system.kill(system.pid_of("head"))
        told = await rolled_out(system, "sim", within=120)
        assert (told["revision"], told["state"]) == (before["revision"] + 1, "served")
        system.change("POST", "deployments/sim/rollback")
        system.kill(system.pid_of("head"))
        told = await rolled_out(system, "sim", within=120)
        assert (told["revision"], told["state"]) == (before["revision"] + 2, "served")
    assert talking.failures == []
    assert talking.answers > 40
    assert system.admin("deployments/sim")["spec"]["engine_args"] == spec["engine_args"]


async def test_a_revision_that_its_engine_refuses_is_rolled_back_without_a_lost_request(
    two_simulated: System,
) -> None:
    system = two_simulated
    system.change("PATCH", "deployments/sim/settings", FAST)
    without_aliases(system, "sim")
    before = await rolled_out(system, "sim", within=60)
    spec = system.admin("deployments/sim")["spec"]
    kept = {replica["pid"] for replica in system.replicas()}
    async with sessions(system, "sim", 8) as talking:
        changed(system, "sim", engine="vllm", model="/no/such/model", engine_args={})
        told = await rolled_out(system, "sim", within=120)
    assert talking.failures == []
    assert "there is no directory /no/such/model" in told["cause"]
    back, bad, *_ = revisions(system, "sim")
    assert (bad["number"], bad["state"]) == (before["revision"] + 1, "failed")
    assert (back["by"], back["undoes"]) == ("penstock", bad["number"])
    assert system.admin("deployments/sim")["spec"] == spec
    assert {replica["pid"] for replica in system.replicas()} == kept


async def test_why_a_revision_failed_is_told_at_a_glance_and_its_replicas_log_is_shown(
    two_simulated: System,
) -> None:
    system = two_simulated
    system.change("PATCH", "deployments/sim/settings", FAST)
    await rolled_out(system, "sim", within=60)
    changed(system, "sim", engine_args={"fail_adapter_loads": "2"})
    told = await rolled_out(system, "sim", within=120)
    words = "fail_adapter_loads is '2': it must be a share from 0 to 1"
    assert words in told["cause"]
    failed, living = told["failed_replica"], [each["id"] for each in system.replicas()]
    assert failed not in living
    own = shown(system, "logs", failed)
    assert any(line.startswith(f"penstock-replica: error: {words}") for line in own)
    all_of_them = shown(system, "logs", "sim", "--tail", "1000")
    assert [f"{failed}: {line}" for line in own] == [
        line for line in all_of_them if line.startswith(failed)
    ]
    assert {line.partition(":")[0] for line in all_of_them} == {failed, *living}
    (said,) = shown(system, "rollout", "status", "sim", "--no-wait")
    assert said.endswith(f"; `penstock logs {failed}` shows its log")
    assert words in said


def shown(system: System, *words: str) -> list[str]:
    """What `penstock` prints."""
    where = ("--data-dir", str(system.data), "--admin", f"127.0.0.1:{system.admin_port}")
    return penstock(*words, *where).splitlines()
