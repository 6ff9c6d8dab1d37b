"""Router programs and roles in documents: applied, written out, applied again."""

from __future__ import annotations

from typing import Any

from penstock.control import spec_files
from penstock.control.state.routing.program import digest_of
from tests.control.admin.app_harness import running_admin
from tests.control.admin.apply.test_apply import MINI, applied, plan_of

TEXT = "async def route(request, engines, stats, *, share=0.5):\n    return None\n"
ASKED: dict[str, Any] = {
    **MINI,
    "microserving": "on",
    "replicas": 3,
    "roles": {"prefill": 1, "decode": 2},
    "selection_policy": "program",
    "program": {"file": TEXT, "args": {"share": 0.1}},
}


async def test_what_is_written_out_makes_the_same_elsewhere_and_nothing_here() -> None:
    async with running_admin() as admin:
        plan = await plan_of(admin, ASKED)
        assert plan["created"] == 1
        again = await plan_of(admin, ASKED)
        assert again["same"] == 1
        (written,) = (await admin.client.get("/admin/v1/export")).json()["documents"]
        assert written == ASKED
        file = spec_files.written([written])
        assert "  file: |\n    async def route" in file, "for people to read"
        (read,) = spec_files.parsed(file, "now.yaml")
        assert read.said == ASKED
        assert (await plan_of(admin, dict(read.said)))["same"] == 1
    async with running_admin() as other:
        await plan_of(other, written)
        shown = (await other.client.get("/admin/v1/deployments/mini")).json()["spec"]
        assert shown["program"]["file"] == TEXT


async def test_a_plan_tells_of_programs_by_their_digests() -> None:
    async with running_admin() as admin:
        await plan_of(admin, ASKED)
        other = TEXT.replace("0.5", "0.6")
        dry = await plan_of(admin, ASKED | {"program": {"file": other}}, dry_run=True)
        (change,) = dry["steps"][0]["fields"]
        assert change == {
            "field": "program",
            "before": {"digest": digest_of(TEXT), "args": {"share": 0.1}},
            "after": {"digest": digest_of(other)},
        }
        assert not admin.cluster.view().programs.get(digest_of(other)), "a dry run"


async def test_a_set_that_says_a_program_no_longer_gives_it_up() -> None:
    async with running_admin() as admin:
        await plan_of(admin, ASKED)
        less = {k: v for k, v in ASKED.items() if k not in ("program", "selection_policy")}
        await plan_of(admin, less)
        shown = (await admin.client.get("/admin/v1/deployments/mini")).json()["spec"]
        assert (shown["program"], shown["selection_policy"]) == (None, "power_of_two")


async def test_a_program_that_cannot_be_is_a_fault_of_its_document() -> None:
    async with running_admin() as admin:
        refused = await applied(admin, ASKED | {"program": {"file": "nothing"}})
        assert refused.status_code == 422
        (fault,) = refused.json()["faults"]
        assert "one function `async def route" in fault["text"]
