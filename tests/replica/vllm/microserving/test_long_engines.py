"""KV moved between whole engines of vLLM that are split, preempted, drained, or read by NIXL."""

from __future__ import annotations

import contextlib
import logging
import random
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest

from penstock.v1 import inference_pb2
from penstock.v1 import microserving_pb2 as pb
from tests.fakes.kv_wire import Wire, through
from tests.fakes.movers import GREEDY, Mover, ids_of, mover, name, sending, words
from tests.fakes.replica_process import chat_request, load_when, running_replica

log = logging.getLogger(__name__)

pytestmark = [
    pytest.mark.long,
    pytest.mark.vllm,
    pytest.mark.processes,
    pytest.mark.timeout(1200),
]

_ARGUMENTS = (
    *("--engine", "vllm", "--model", "penstock-mini", "--microserving"),
    *("--adapter", "pirate@1=penstock-mini/pirate"),
)
_SENDS = 60
_KINDS = [
    (adapter, sampling)
    for adapter in ("", "pirate@1")
    for sampling in ({}, {"temperature": 0.8, "seed": 7})
]


@contextlib.contextmanager
def _replica(file: Path, settings: Sequence[str], **env: str) -> Iterator[Mover]:
    words = [word for one in settings for word in ("--engine-arg", one)]
    with (
        running_replica(file, *_ARGUMENTS, *words, within=400, env=env) as process,
        mover(process) as client,
    ):
        yield client


@contextlib.contextmanager
def _two(folder: Path, *settings: str, **env: str) -> Iterator[tuple[Mover, Mover]]:
    with (
        _replica(folder / "one", settings, **env) as one,
        _replica(folder / "two", settings, **env) as two,
    ):
        yield one, two


def _request(text: str, adapter: str, sampling: dict[str, Any]) -> inference_pb2.CallRequest:
    request = chat_request(text, name(), **{**GREEDY, **sampling})
    request.adapter, request.token_groups = adapter, True
    return request


def _answer(at: Mover, request: inference_pb2.CallRequest) -> tuple[list[int], int]:
    """The tokens, and how many were moved for it."""
    events = list(at.calls.Call(request, timeout=120))
    assert events[-1].HasField("finished"), events[-1]
    return ids_of(events), events[0].head.kv_moved_tokens


def _leased(at: Mover, request: inference_pb2.CallRequest) -> tuple[pb.Prompt, pb.PrepRecvReply]:
    """A prompt, and a lease for it that the request goes by."""
    prompt = at.kv.Tokenize(pb.TokenizeRequest(call=request), timeout=60).prompt
    lease = at.prepared(prompt, name())
    request.kv.seq_id = lease.kv_addr.lease
    return prompt, lease


def _moved_answer(one: Mover, two: Mover, request: inference_pb2.CallRequest) -> list[int]:
    """Of the second engine, with KV of the first one."""
    moved = inference_pb2.CallRequest()
    moved.CopyFrom(request)
    moved.request_id = name()
    prompt, lease = _leased(two, moved)
    assert one.sent(prompt, lease).moved_tokens == lease.end - lease.matched_len
    ids, tokens = _answer(two, moved)
    assert _is_all(tokens, lease)
    return ids


def _is_all(moved: int, lease: pb.PrepRecvReply) -> bool:
    """The block of a prompt's last token is computed once more."""
    missed = lease.end - lease.matched_len
    return moved in (missed, missed - lease.kv_addr.block_size)


def _free(at: Mover) -> int:
    at.idle()
    return int(_lookup(at).free_blocks)


def _lookup(at: Mover) -> pb.LookupReply:
    prompt = pb.Prompt(token_ids=[5, 6, 7])
    reply = at.kv.Lookup(pb.LookupRequest(prompt=prompt), timeout=60)
    assert isinstance(reply, pb.LookupReply)
    return reply


def test_a_request_that_is_preempted_while_its_kv_is_sent_moves_it_whole(tmp_path: Path) -> None:
    """A pool so small that what runs beside takes its blocks, steps so short that it has many."""
    short = ("max_model_len=1024", "max_num_batched_tokens=64", "max_num_seqs=16")
    with (
        _replica(tmp_path / "one", (*short, "num_gpu_blocks_override=48")) as one,
        _replica(tmp_path / "two", short) as two,
    ):
        before, enough = (_free(one), _free(two)), threading.Event()
        with ThreadPoolExecutor(10) as pool:
            beside = [pool.submit(_decodes, one, number, enough) for number in range(5)]
            try:
                sizes = [_moves_beside(one, two, number) for number in range(_SENDS)]
            finally:
                enough.set()
            answers = sum(done.result() for done in beside)
        again = sum(size > min(sizes) for size in sizes)
        log.warning("%d of %d sends were preempted after something was sent, beside %d answers",
                    again, _SENDS, answers)  # fmt: skip
        assert again
        assert (_free(one), _free(two)) == before


def _decodes(at: Mover, number: int, enough: threading.Event) -> int:
    """Long answers one after the other, that need more and more blocks; each is right. So many."""
    count, text, right = 0, f"Tell me of {number} rivers.", list[int]()
    while not enough.is_set():
        request = chat_request(
            text, name(), temperature=0.8, seed=number, max_tokens=400, ignore_eos=True
        )
        request.token_groups = True
        ids, _ = _answer(at, request)
        assert not right or ids == right, "seeded, and preempted now and then"
        right, count = ids, count + 1
    return count


def _moves_beside(one: Mover, two: Mover, number: int) -> float:
    """Moves a prompt, and looks at the answer; the bytes that were sent for each block."""
    text = words(40 + 3 * (number % 30))
    request = _request(text, "pirate@1" if number % 3 == 0 else "", _KINDS[number % 2][1])
    plain = inference_pb2.CallRequest()
    plain.CopyFrom(request)
    prompt, lease = _leased(two, request)
    sent = one.kv.RemoteSend(sending(prompt, lease), timeout=120)
    ids, moved = _answer(two, request)
    assert sent.moved_tokens == lease.end - lease.matched_len
    assert _is_all(moved, lease)
    plain.request_id = name()
    assert ids == _answer(one, plain)[0], number
    return float(sent.moved_bytes / lease.kv_addr.blocks)


def test_engines_that_are_split_move_their_kv_rank_by_rank(tmp_path: Path) -> None:
    """And one that is not moves none to them."""
    with (
        _two(tmp_path, "tensor_parallel_size=2", "cpu_kvcache_gib=0.25",
             VLLM_CPU_OMP_THREADS_BIND="0|1") as (one, two),
        _replica(tmp_path / "whole", ("cpu_kvcache_gib=0.25",)) as whole,
    ):  # fmt: skip
        before = [_free(at) for at in (one, two, whole)]
        for adapter, sampling in _KINDS * 2:
            request = _request(words(random.randrange(60, 300)), adapter, sampling)
            for sender, receiver in ((one, two), (two, one)):
                ids = _moved_answer(sender, receiver, request)
                assert ids == _answer(sender, request)[0]
                request = _request(words(100), adapter, sampling)
        request = _request(words(), "", {})
        prompt, lease = _leased(two, request)
        assert len(lease.kv_addr.ranks) == 2
        with pytest.raises(grpc.RpcError, match="fingerprint"):
            whole.sent(prompt, lease)
        ids, moved = _answer(two, request)
        assert moved == 0
        request.ClearField("kv")
        assert ids == _answer(one, request)[0]
        assert [_free(at) for at in (one, two, whole)] == before


def test_blocks_that_are_fetched_by_nixl_give_the_same_answers(tmp_path: Path) -> None:
    pytest.importorskip("nixl")
    settings = ("microserving_transport=nixl", "cpu_kvcache_gib=0.1", "max_num_batched_tokens=256")
    with _two(tmp_path, *settings) as (one, two):
        before = (_free(one), _free(two))

        def moves(number: int) -> None:
            adapter, sampling = _KINDS[number % 4]
            sender, receiver = random.Random(number).sample((one, two), 2)
            request = _request(words(20 + 5 * (number % 50)), adapter, sampling)
            if number % 10 == 9:  # its lease ends while it is sent
                prompt, lease = _leased(receiver, request)
                under_way = sender.kv.RemoteSend.future(sending(prompt, lease), timeout=60)
                release = pb.ReleaseRequest(seq_id=lease.kv_addr.lease)
                receiver.kv.Release(release, timeout=60)
                with contextlib.suppress(grpc.RpcError):
                    under_way.result()
                ids = _answer(receiver, request)[0]
            else:
                ids = _moved_answer(sender, receiver, request)
            request.ClearField("kv")
            assert ids == _answer(sender, request)[0], number

        with ThreadPoolExecutor(4) as pool:
            for done in [pool.submit(moves, number) for number in range(200)]:
                done.result()
        assert (_free(one), _free(two)) == before


@pytest.mark.parametrize("who", ["receiver", "sender"])
def test_a_replica_that_ends_while_kv_moves_leaves_nothing_at_the_other(
    tmp_path: Path, who: str
) -> None:
    with _two(tmp_path, "cpu_kvcache_gib=0.1") as (one, two):
        stays, goes = (one, two) if who == "receiver" else (two, one)
        before = _free(stays)
        prompt = two.tokenized(words()).prompt
        lease = two.prepared(prompt, name(), ttl_ms=5000)
        rank = lease.kv_addr.ranks[0]
        with through(lease, Wire(rank.host, rank.port, 0, frames=0, stands=True)) as bent:
            moving = one.kv.RemoteSend.future(sending(prompt, bent), timeout=60)
            load_when(two.calls, lambda load: load.transfers == 1)
            goes.process.signal(signal.SIGTERM)
            began = time.monotonic()
            with pytest.raises(grpc.RpcError) as caught:
                moving.result()
        log.warning("%s, told %.1f s after", caught.value.details(), time.monotonic() - began)
        assert goes.process.ended(within=60).code == 0
        assert _free(stays) == before
