"""`penstock tenants`, `keys` and `usage`, against a real admin API."""

from __future__ import annotations

import asyncio
import hashlib
import json

import pytest
from typer.testing import CliRunner

from penstock.control.cli.app import app
from penstock.control.state.tenancy.usage import Counts, Reading, UsageKey
from tests.control.cli.conftest import AskedHead
from tests.fakes.control_values import NOON


def test_a_tenant_is_created_changed_shown_and_deleted(asked_head: AskedHead) -> None:
    limits = ("requests-per-minute=60", "models=mini,other", "priority=high", "cache_salt=")
    created = asked_head.run("tenants", "create", "acme", *limits)
    assert created.stdout == "tenant acme is made (generation 1)\n", created.stderr
    changed = asked_head.run(
        "tenants",
        "set",
        "acme",
        "max_streams=4",
        "cache_salt=own",
        "degrade=never",
        "fallbacks=allow",
        "--json",
    )
    told = json.loads(changed.stdout)
    assert (told["requests_per_minute"], told["max_streams"]) == (60, 4)
    assert (told["models"], told["priority"]) == (["mini", "other"], "high")
    assert told["fallbacks"] == "allow"
    assert (told["cache_salt"], told["degrade"], told["generation"]) == (None, "never", 2)
    shown = asked_head.run("tenants", "show", "acme").stdout
    assert "cache_salt: own\n" in shown
    assert "models: mini,other\n" in shown
    assert "acme" in asked_head.run("tenants", "list").stdout
    assert json.loads(asked_head.run("tenants", "list", "--json").stdout) == [told]
    assert asked_head.run("tenants", "delete", "acme", "--yes").stdout == "tenant acme is deleted\n"
    assert "no tenant 'acme'" in asked_head.run("tenants", "show", "acme").stderr


def test_a_limit_that_does_not_exist_is_told_those_that_do(asked_head: AskedHead) -> None:
    asked_head.run("tenants", "create", "acme")
    refused = asked_head.run("tenants", "set", "acme", "max_stream=4")
    assert refused.exit_code != 0
    told = " ".join(refused.stderr.split())
    assert "max_stream: there is no such key; there are requests_per_minute, " in told
    assert "max_streams, models, adapters, priority, degrade, fallbacks, shadow, cache_salt" in told


def test_a_dry_run_changes_nothing(asked_head: AskedHead) -> None:
    dry = asked_head.run("tenants", "create", "acme", "--dry-run")
    assert dry.stdout == "tenant acme would be made (generation 1)\n"
    assert json.loads(asked_head.run("tenants", "list", "--json").stdout) == []
    asked_head.run("tenants", "create", "acme")
    dry = asked_head.run("tenants", "set", "acme", "max_streams=1", "--dry-run", "--json")
    assert json.loads(dry.stdout)["max_streams"] == 1
    assert (
        json.loads(asked_head.run("tenants", "show", "acme", "--json").stdout)["max_streams"] == 0
    )


def test_a_key_is_shown_once_listed_and_revoked(asked_head: AskedHead) -> None:
    asked_head.run("tenants", "create", "acme")
    created = asked_head.run("keys", "create", "acme", "--name", "ci", "--expires-in-days", "9")
    told, secret = created.stdout.splitlines()
    assert created.stderr.startswith("warning: this is the first key: ")
    assert "`penstock keys anonymous allow`" in created.stderr
    assert "it is not shown again" in told
    tenancy = asked_head.admin.cluster.view().tenancy
    (key,) = tenancy.keys.values()
    assert key.digest == hashlib.sha256(secret.encode()).hexdigest()
    listed = asked_head.run("keys", "list", "acme").stdout
    assert key.id in listed
    assert "2026-01-11" in listed
    assert secret not in listed
    moment = "2027-01-01T10:00:00"
    other = json.loads(
        asked_head.run("keys", "create", "acme", "--expires-at", moment, "--json").stdout
    )
    assert other["warning"] == ""
    assert other["expires_at"] == f"{moment}Z"
    assert asked_head.run("keys", "revoke", "acme", key.id).stdout.endswith(
        "answers that are under way with it go on to their end (--end-streams ends them)\n"
    )
    left = json.loads(asked_head.run("keys", "list", "acme", "--json").stdout)
    assert [each["id"] for each in left] == [other["id"]]


def test_a_key_is_revoked_with_what_it_has_under_way_where_that_is_asked_for(
    asked_head: AskedHead,
) -> None:
    asked_head.run("tenants", "create", "acme")
    for as_json in ((), ("--json",)):
        asked_head.run("keys", "create", "acme")
        (key,) = asked_head.admin.cluster.view().tenancy.keys
        told = asked_head.run("keys", "revoke", "acme", key, "--end-streams", *as_json)
        assert ("end with the error key_revoked" in told.stdout) is not bool(as_json)
        assert asked_head.admin.cluster.view().tenancy.access.ended_keys[-1] == key
    assert json.loads(told.stdout) == {"revoked": key, "streams": "ended"}


def test_dollars_and_tokens_of_a_day_are_set_for_tenants_and_for_keys(
    asked_head: AskedHead,
) -> None:
    asked_head.run("tenants", "create", "acme", "usd_per_day=0.5")
    asked_head.run("tenants", "set", "acme", "usd_per_day=50")
    limits = ("--set", "usd_per_day=2.5", "--set", "tokens_per_day=9")
    asked_head.run("keys", "create", "acme", *limits)
    tenancy = asked_head.admin.cluster.view().tenancy
    (key,) = tenancy.keys.values()
    assert tenancy.tenant("acme").spec.usd_per_day == 50
    assert (key.usd_per_day, key.tokens_per_day) == (2.5, 9)
    (listed,) = json.loads(asked_head.run("keys", "list", "acme", "--json").stdout)
    assert (listed["usd_per_day"], listed["tokens_per_day"]) == (2.5, 9)
    for wrong in ("usd_per_day=much", "usd_per_day=-1", "max_streams=1"):
        refused = asked_head.run("keys", "create", "acme", "--set", wrong)
        assert refused.exit_code != 0
        assert wrong.partition("=")[0] in refused.stderr


def test_the_door_for_requests_without_a_key_is_told_and_moved(asked_head: AskedHead) -> None:
    assert asked_head.run("keys", "anonymous").stdout == "requests without a key are allowed\n"
    asked_head.run("tenants", "create", "acme")
    asked_head.run("keys", "create", "acme")
    told = asked_head.run("keys", "anonymous", "--json")
    assert json.loads(told.stdout) == {"anonymous": "refused"}
    for wanted, said in (("allow", "allowed"), ("refuse", "refused")):
        told = asked_head.run("keys", "anonymous", wanted)
        assert told.stdout == f"requests without a key are {said}\n"


def test_usage_is_a_table_or_json(asked_head: AskedHead) -> None:
    readings = [
        Reading(NOON.date(), "i", UsageKey("acme", "key_1", "mini", "pirate@1"), Counts(3, 1, 30)),
        Reading(NOON.date(), "i", UsageKey("", "", "mini", ""), Counts(1, 0, 5, 6, 4)),
    ]
    asyncio.run(asked_head.admin.store.record(readings))
    shown = asked_head.run("usage").stdout
    assert "Usage from 2025-12-04 to 2026-01-02" in shown
    assert "mini (pirate@1)" in shown
    assert "4 requests, 1 rejected, 35 prompt tokens (4 cached), 6 completion" in shown
    told = json.loads(asked_head.run("usage", "acme", "--from", "2026-01-01", "--json").stdout)
    assert (told["from"], told["to"]) == ("2026-01-01", "2026-01-02")
    assert [row["key_id"] for row in told["rows"]] == ["key_1"]
    assert "no tenant 'nobody'" in asked_head.run("usage", "nobody").stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("tenants", "create", "Not One"), "id is 'Not One'"),
        (("tenants", "create", "a", "oops"), "limit 'oops'"),
        (("tenants", "create", "a", "oops=1"), "oops"),
        (("tenants", "create", "a", "max_streams=many"), "integer, not 'many'"),
        (("tenants", "create", "a", "max_streams=-4"), "equal to 0, not -4"),
        (("tenants", "set", "nobody", "max_streams=1"), "no tenant 'nobody'"),
        (("tenants", "delete", "nobody"), "no tenant 'nobody'"),
        (("keys", "create", "nobody"), "no tenant 'nobody'"),
        (("keys", "revoke", "nobody", "key_1"), "no tenant 'nobody'"),
        (("usage", "--from", "2026-01-05"), "swap them"),
    ],
)
def test_what_goes_wrong_is_one_line(
    asked_head: AskedHead, arguments: tuple[str, ...], words: str
) -> None:
    reply = asked_head.run(*arguments)
    assert reply.exit_code == 1
    (line,) = reply.stderr.splitlines()
    assert ": error: " in line
    assert words in line


@pytest.mark.parametrize(
    "verb",
    [
        *(f"tenants {verb}" for verb in ("create", "list", "show", "set", "delete")),
        *(f"keys {verb}" for verb in ("create", "list", "revoke", "anonymous")),
        "usage",
    ],
)
def test_every_verb_has_help_with_an_example(verb: str) -> None:
    runner = CliRunner(env={"COLUMNS": "120", "NO_COLOR": "1", "TERM": "dumb"})
    reply = runner.invoke(app, [*verb.split(), "-h"])
    assert reply.exit_code == 0
    assert f"penstock {verb}" in reply.output
    assert "Example" in reply.output


def test_usage_that_cost_money_says_how_much(asked_head: AskedHead) -> None:
    assert "USD" not in asked_head.run("usage").stdout
    counts = Counts(3, 1, 30, cost_nanousd=1_250_000_000)
    reading = Reading(NOON.date(), "i", UsageKey("acme", "key_1", "cloud", ""), counts)
    asyncio.run(asked_head.admin.store.record([reading]))
    shown = asked_head.run("usage").stdout
    assert "USD" in shown
    assert "0 completion tokens, $1.25" in " ".join(shown.split())
    assert asked_head.run("usage", "--csv").stdout.splitlines() == [
        "day,tenant,key,model,adapter,requests,rejected,prompt_tokens,cached_tokens,"
        "completion_tokens,usd",
        "2026-01-02,acme,key_1,cloud,,3,1,30,0,0,1.25",
    ]
