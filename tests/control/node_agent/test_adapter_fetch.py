"""Heads that send something else than an adapter that was asked for, too much of it, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from penstock.adapters.fitness import FamilyLimits
from penstock.control.errors import Unavailable
from penstock.v1 import nodes_pb2
from tests.control.node_agent.adapter_world import Piece, Pieces, opened


def other_bytes(pieces: Sequence[nodes_pb2.AdapterPiece]) -> Pieces:
    last = pieces[-1].data
    return [*pieces[:-1], Piece(data=last[:-1] + bytes([last[-1] ^ 1]))]


def cut(pieces: Sequence[nodes_pb2.AdapterPiece]) -> Pieces:
    return [*pieces[:-1], Piece(data=pieces[-1].data[:-1])]


def half(pieces: Sequence[nodes_pb2.AdapterPiece]) -> Pieces:
    return pieces[:1]


def nothing(pieces: Sequence[nodes_pb2.AdapterPiece]) -> Pieces:
    return []


def one_file_more(pieces: Sequence[nodes_pb2.AdapterPiece]) -> Pieces:
    return [*pieces, Piece(file="special_tokens_map.json", data=b"{}")]


def a_file_elsewhere(pieces: Sequence[nodes_pb2.AdapterPiece]) -> Pieces:
    return [Piece(file="../../adapter_config.json", data=b"{}"), *pieces]


def twice(pieces: Sequence[nodes_pb2.AdapterPiece]) -> Pieces:
    return [*pieces, *pieces]


def nameless(pieces: Sequence[nodes_pb2.AdapterPiece]) -> Pieces:
    return [Piece(data=b"x"), *pieces]


def empty_for_ever(pieces: Sequence[nodes_pb2.AdapterPiece]) -> Pieces:
    yield pieces[0]
    while True:
        yield Piece()


def endless(pieces: Sequence[nodes_pb2.AdapterPiece]) -> Pieces:
    yield from pieces
    while True:
        yield Piece(data=bytes(1 << 20))


def endless_config(pieces: Sequence[nodes_pb2.AdapterPiece]) -> Pieces:
    yield pieces[0]
    while True:
        yield Piece(data=b" " * 100_000)


@pytest.mark.parametrize(
    ("telling", "why"),
    [
        (other_bytes, "sent the content"),
        (cut, "sent the content"),
        (half, "here is adapter_config.json"),
        (nothing, "here is nothing"),
        (one_file_more, "special_tokens_map.json"),
        (a_file_elsewhere, "the head sent a file"),
        (twice, "the head sent a file"),
        (nameless, "belongs to no file"),
        (empty_for_ever, "holds nothing"),
        (endless, "more than 8388608 bytes of adapter_model.safetensors"),
        (endless_config, "more than 1048576 bytes of adapter_config.json"),
    ],
)
async def test_what_was_not_asked_for_is_refused_and_leaves_nothing(
    tmp_path: Path, telling: Callable[[Sequence[nodes_pb2.AdapterPiece]], Pieces], why: str
) -> None:
    async with opened(tmp_path, limits=FamilyLimits(max_bytes=8 << 20)) as world:
        world.head.telling = telling
        with pytest.raises(Unavailable, match=why):
            await world.cache.content(world.pirate)
        assert world.lying == set()
        assert world.left_over() == []
        assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "head"]
        world.head.telling = list
        assert (await world.cache.content(world.pirate)).is_dir()


async def test_a_head_that_falls_silent_is_left(tmp_path: Path) -> None:
    async with opened(tmp_path, patience=timedelta(seconds=0.1)) as world:
        world.head.stuck = True
        with pytest.raises(Unavailable, match=r"sent nothing of the adapter for 0.1 s"):
            await world.cache.content(world.pirate)
        assert world.left_over() == []
