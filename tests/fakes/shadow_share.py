"""Which requests a shadow rule samples, as routes.proto says it."""

from __future__ import annotations

_WHOLE = (1 << 64) - 1


def is_sampled(seed: int, name: str, share_permille: int) -> bool:
    """`name`: the request's id, or its session's."""
    return _place(seed, name) % 1000 < share_permille


def is_asked_again(seed: int, name: str, self_permille: int) -> bool:
    """Of one that is sampled: whether the primary answers it a second time, too."""
    return _mix(_place(seed, name)) % 1000 < self_permille


def _place(seed: int, name: str) -> int:
    return _mix(_hash(name) ^ _mix(seed))


def _hash(text: str) -> int:
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 & _WHOLE
    return _mix(value)


def _mix(x: int) -> int:
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & _WHOLE
    x = (x ^ x >> 27) * 0x94D049BB133111EB & _WHOLE
    return x ^ x >> 31
