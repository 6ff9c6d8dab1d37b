"""What replicas and their callers show each other: derived from the cluster token, each for one."""

from __future__ import annotations

import pytest

from penstock.control.replica_tokens import (
    callers_token,
    replica_of,
    replica_token,
    replica_tokens,
)

CLUSTER = "5ecre7"


def test_callers_show_what_gateways_derive_too() -> None:
    # As tests/gateway_cpp/upstream/callers_token_test.cc has it.
    assert callers_token(CLUSTER, "mini-1") == (
        "0cbb715634a4049ea7a779f19de814be85fb739681e5a8fc84c8becbc05bf13c"
    )


def test_every_replica_cluster_and_agent_has_tokens_of_its_own() -> None:
    made = {
        callers_token(CLUSTER, "mini-1"),
        callers_token(CLUSTER, "mini-2"),
        callers_token("other", "mini-1"),
        replica_token(CLUSTER, "agent-1", "mini-1"),
        replica_token(CLUSTER, "agent-1", "mini-2"),
        replica_token(CLUSTER, "agent-2", "mini-1"),
        replica_token("other", "agent-1", "mini-1"),
    }
    assert len(made) == 7


def test_an_agent_knows_its_replicas_by_their_tokens() -> None:
    token = replica_token(CLUSTER, "agent-1", "mini-1")
    assert replica_of(token, CLUSTER, "agent-1") == "mini-1"


@pytest.mark.parametrize(
    "token",
    [
        "",
        ":",
        CLUSTER,
        "mini-1:",
        f"mini-1:{CLUSTER}",
        callers_token(CLUSTER, "mini-1"),
        f"mini-1:{callers_token(CLUSTER, 'mini-1')}",
        replica_token(CLUSTER, "agent-2", "mini-1"),
        replica_token("other", "agent-1", "mini-1"),
        replica_token(CLUSTER, "agent-1", "mini-2").replace("mini-2", "mini-1"),
        "mini-1:ä",
    ],
)
def test_an_agent_takes_no_other_token_for_a_replicas(token: str) -> None:
    assert not replica_of(token, CLUSTER, "agent-1")


def test_without_a_cluster_token_there_are_none() -> None:
    assert replica_tokens("", "agent-1", "mini-1") == {}
    assert callers_token("", "mini-1") == replica_token("", "agent-1", "mini-1") == ""
