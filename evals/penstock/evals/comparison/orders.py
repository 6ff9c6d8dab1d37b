"""Who is asked first: drawn for each question, so that nobody has the quieter machine. Pure."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import TypeVar

Asked = TypeVar("Asked")


def orders(
    count: int, all_of: Sequence[Asked], seed: int
) -> Iterator[tuple[int, tuple[Asked, ...]]]:
    """For each of so many questions its number and those to ask, in an order of the seed."""
    chance = random.Random(seed)
    drawn = [tuple(chance.sample(all_of, len(all_of))) for _ in range(count)]
    return iter(list(enumerate(drawn)))
