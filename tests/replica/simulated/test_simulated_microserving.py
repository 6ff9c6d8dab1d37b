"""How the simulated engine moves KV: time, peers that die or hang, and what is left of it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.replica.calls.answers import events_of
from penstock.replica.calls.inbox import Inbox
from penstock.replica.microserving.values import (
    KvRank,
    MicroServingError,
    Prepared,
    Prompt,
    Sending,
    Sent,
)
from penstock.replica.simulated.engine import SimulatedEngine
from penstock.replica.simulated.kv_transfer import Pace, offer_of
from penstock.replica.simulated.microserving import SimulatedMicroServing
from penstock.replica.values import Call, Event, Head, KvHint

_HOST = "127.0.0.1"
_PROMPT = Prompt(tuple(range(160)))


@asynccontextmanager
async def _engine(**engine_args: str) -> AsyncIterator[tuple[SimulatedEngine, Any]]:
    """An engine, and what moves its KV."""
    inbox = Inbox()
    engine = SimulatedEngine("m", "served", (), engine_args, inbox, None, _HOST)
    inbox.open()
    try:
        await engine.start()
        assert isinstance(engine.microserving, SimulatedMicroServing)
        yield engine, engine.microserving
    finally:
        inbox.close()
        await engine.stop()


def _sending(to: Prepared, **fields: Any) -> Sending:
    sending = Sending(_PROMPT, to.kv_addr, to.matched_len, to.end, to.kv_addr.lease)
    return replace(sending, **fields)


async def _answer(engine: SimulatedEngine, kv: KvHint | None = None, **body: Any) -> list[Event]:
    body = {"prompt": _PROMPT.token_ids, "max_tokens": 2, **body}
    call = Call("r", "/v1/completions", json.dumps(body).encode(), "served", kv=kv)
    return [event async for event in events_of(engine.answer, call)]


async def _until(condition: Any) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


def test_a_transfer_takes_its_beginning_and_its_bytes() -> None:
    assert Pace(1000, 4000.0, 0.5).seconds(8) == 2.5
    assert Pace(1000, 0.0, 0.0).seconds(8) == 0.0


async def test_what_is_there_is_not_computed_again() -> None:
    async with _engine(prefill_tokens_per_second="100000") as (engine, moving):
        assert (await moving.lookup(_PROMPT)).matched_len == 0
        await _answer(engine, KvHint())
        assert (await moving.lookup(_PROMPT)).matched_len == 160
        head = (await _answer(engine, KvHint()))[0]
        assert isinstance(head, Head)
        # The last token is computed in any case, and so its block.
        assert head.cached_tokens == 144


async def test_the_first_token_waits_for_what_is_computed_alone() -> None:
    slow = {"prefill_tokens_per_second": "16", "kv_blocks": "100"}
    async with _engine() as (_, sender), _engine(**slow) as (engine, receiver):
        lease = await receiver.prep_recv(_PROMPT, 160, "a", 0)
        await sender.remote_send(_sending(lease))
        # Ten seconds for the whole prompt, one for its last block.
        async with asyncio.timeout(5):
            head = (await _answer(engine, KvHint("a")))[0]
    assert isinstance(head, Head)
    assert (head.kv_moved_tokens, head.cached_tokens) == (144, 0)


async def test_a_sender_that_stops_leaves_what_arrived_and_nothing_under_way() -> None:
    slow = {"kv_bytes_per_token": "1000", "kv_bytes_per_second": "16000"}
    async with _engine(**slow) as (_, sender), _engine(**slow) as (_, receiver):
        lease = await receiver.prep_recv(_PROMPT, 160, "a", 0)
        async with asyncio.TaskGroup() as tasks:
            send = tasks.create_task(sender.remote_send(_sending(lease)))
            await _until(lambda: receiver.figures().bytes_in > 0)
            assert receiver.figures().transfers == sender.figures().transfers == 1
            send.cancel()
        await _until(lambda: not receiver.figures().transfers)
        assert sender.figures().transfers == 0
        assert receiver.figures().failures == {"transfer": 1}
        done = await receiver.commit("a")
        assert 0 < done.cached_len < 160


async def test_a_lease_that_ends_ends_its_transfer() -> None:
    slow = {"kv_bytes_per_token": "1000", "kv_bytes_per_second": "16000"}
    async with _engine(**slow) as (_, sender), _engine(**slow) as (_, receiver):
        lease = await receiver.prep_recv(_PROMPT, 160, "a", 0)
        async with asyncio.TaskGroup() as tasks:
            send = tasks.create_task(_caught(sender.remote_send(_sending(lease))))
            await _until(lambda: receiver.figures().transfers)
            await receiver.release("a")
        assert send.result().cause in ("transfer", "no_lease")
        await _until(lambda: not receiver.figures().transfers)


async def test_a_receiver_that_is_gone_is_a_broken_transfer() -> None:
    async with _engine() as (_, sender), _engine() as (_, receiver):
        lease = await receiver.prep_recv(_PROMPT, 160, "a", 0)
        receiver.stop()
        error = await _caught(sender.remote_send(_sending(lease)))
        assert error.cause == "transfer"
        assert sender.figures().failures == {"transfer": 1}


async def test_bytes_keep_a_lease_and_silence_ends_it() -> None:
    pace = {"kv_bytes_per_token": "1000", "kv_bytes_per_second": "320000"}
    async with _engine(**pace) as (_, sender), _engine(**pace) as (_, receiver):
        lease = await receiver.prep_recv(_PROMPT, 160, "a", 250)
        sent: Sent = await sender.remote_send(_sending(lease))
        assert sent.moved_tokens == 160
        assert sent.transfer_us >= 500_000
        assert receiver.figures().leases == 1
        await _until(lambda: not receiver.figures().leases)
        assert (await receiver.lookup(_PROMPT)).matched_len == 0


async def test_other_engines_move_nothing() -> None:
    async with _engine() as (_, receiver), _engine(kv_bytes_per_token="7") as (_, sender):
        lease = await receiver.prep_recv(_PROMPT, 160, "a", 0)
        error = await _caught(sender.remote_send(_sending(lease)))
        assert error.cause == "fingerprint"


async def test_what_a_second_sender_brings_goes_on_where_the_first_ended() -> None:
    async with _engine() as (_, sender), _engine() as (_, receiver):
        lease = await receiver.prep_recv(_PROMPT, 160, "a", 0)
        await sender.remote_send(_sending(lease, end=64))
        gap = await _caught(sender.remote_send(_sending(lease, begin=96)))
        assert gap.cause == "bad_request"
        await sender.remote_send(_sending(lease, begin=64))
        assert (await receiver.commit("a")).cached_len == 160


async def test_leases_take_blocks_from_calls() -> None:
    async with _engine(kv_blocks="40") as (engine, moving):
        await moving.prep_recv(_PROMPT, 160, "a", 0)
        assert moving.figures().leased_blocks == 10
        assert (await moving.lookup(_PROMPT)).free_blocks == 30
        error = await _caught(moving.prep_recv(replace(_PROMPT, adapter="b@1"), 160, "b", 0))
        assert error.cause == "no_kv_capacity"
        await _answer(engine, KvHint("a"))
        assert moving.figures().leased_blocks == 0


async def test_a_sleep_forgets_all_of_it() -> None:
    async with _engine() as (engine, moving):
        await _answer(engine, KvHint())
        await moving.prep_recv(replace(_PROMPT, tenant_salt="s"), 160, "a", 0)
        await engine.sleep(1)
        assert moving.figures().leases == 0
        await engine.wake()
        assert (await moving.lookup(_PROMPT)).matched_len == 0


async def test_a_peer_that_says_nonsense_moves_nothing_and_harms_nobody() -> None:
    async with _engine() as (_, receiver), _engine() as (_, sender):
        lease = await receiver.prep_recv(_PROMPT, 160, "a", 0)
        (rank,) = lease.kv_addr.ranks
        for line in (b"\n", b"{}\n", b"[" * 3000 + b"\n", b"x" * 9000 + b"\n", b"\xff\n", b""):
            await _says(rank, line)
        await _until(lambda: not receiver.figures().transfers)
        await sender.remote_send(_sending(lease))
        assert (await receiver.commit("a")).cached_len == 160


@given(
    st.dictionaries(
        st.sampled_from(("lease", "nonce", "fingerprint", "first", "blocks")),
        st.text() | st.integers() | st.none() | st.lists(st.integers(), max_size=2),
    )
)
def test_a_first_word_is_an_offer_or_is_refused(word: dict[str, Any]) -> None:
    with contextlib.suppress(MicroServingError):
        offer = offer_of(word)
        assert isinstance(offer.lease, str)
        assert isinstance(offer.blocks, int)


async def test_a_call_that_fails_at_the_sender_is_no_transfer() -> None:
    async with _engine(refuse_share="1") as (_, sender), _engine() as (_, receiver):
        lease = await receiver.prep_recv(_PROMPT, 160, "a", 0)
        error = await _caught(sender.remote_send(_sending(lease)))
        assert error.cause == "transfer"
        assert "refuse_share" in str(error)


async def _caught(work: Any) -> MicroServingError:
    with pytest.raises(MicroServingError) as caught:
        await work
    return caught.value


async def _says(to: KvRank, line: bytes) -> None:
    """Says one line to where KV is taken, and waits for its end."""
    reader, writer = await asyncio.open_connection(to.host, to.port)
    writer.write(line)
    writer.write_eof()
    with contextlib.suppress(OSError):
        await reader.read()
    writer.close()
