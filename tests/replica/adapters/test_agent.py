"""What the node agent hands out of adapters, as a replica asks for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.replica.adapters.agent import AgentContents
from penstock.replica.values import EngineError
from tests.fakes.replica_agent import replica_agent

_DIGEST = "d" * 64


async def test_a_content_lies_where_the_agent_says(tmp_path: Path) -> None:
    with replica_agent() as agent:
        agent.offer("a@1", _DIGEST, tmp_path)
        assert await AgentContents(agent.address, 10).directory(_DIGEST) == tmp_path


async def test_what_the_agent_says_is_in_the_error() -> None:
    with replica_agent() as agent:
        contents = AgentContents(agent.address, 10)
        with pytest.raises(EngineError, match=f"{_DIGEST}: NOT_FOUND: nobody registered it"):
            await contents.directory(_DIGEST)
        agent.offer("a@1", _DIGEST, Path("here"))
        with pytest.raises(EngineError, match="lies at 'here', which is no absolute path"):
            await contents.directory(_DIGEST)


async def test_an_agent_that_stays_away_is_named_by_its_code() -> None:
    with pytest.raises(EngineError, match=r"does not hand out .*: UNAVAILABLE"):
        await AgentContents("127.0.0.1:1", 10, patience=0.1).directory(_DIGEST)
