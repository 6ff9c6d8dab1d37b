"""What names a prompt's KV: block hashes as vLLM makes them, and the fingerprint of a lease.

The fingerprint stands for all that has to be alike on both sides for one to take the other's bytes
for its own: both engines, the adapter's bytes, and the tokens themselves. Equal on every machine.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Sequence
from typing import Any, Final

from penstock.replica.microserving.values import Prompt

_LOW: Final = (1 << 64) - 1


def lora_name(prompt: Prompt) -> str:
    """What vLLM calls the prompt's adapter, as `lora/adapters.py` does; empty: the base model."""
    return f"{prompt.adapter}:{prompt.adapter_digest}" if prompt.adapter else ""


def engine_fingerprint(parts: dict[str, Any]) -> str:
    """Of an engine, of all that decides the bytes of its KV, and how they are moved."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def lease_fingerprint(engine: str, prompt: Prompt, end: int) -> str:
    """Of the KV of a prompt's first tokens."""
    told = [engine, prompt.adapter, prompt.adapter_digest, prompt.tenant_salt, end]
    digest = hashlib.sha256(json.dumps(told).encode())
    digest.update(array("I", prompt.token_ids[:end]).tobytes())
    return digest.hexdigest()


def placed(fingerprint: str, first: int) -> str:
    """What two workers say to each other of a lease whose place 0 is for the prompt's block
    `first`: who was told another one would put blocks where they do not belong."""
    return hashlib.sha256(f"{fingerprint} {first}".encode()).hexdigest()


def block_hashes(prompt: Prompt, size: int) -> tuple[int, ...]:
    """Of the whole blocks of a prompt without pictures, the low 64 bits. Imports vLLM."""
    from vllm.utils.hashing import sha256_cbor
    from vllm.v1.core.kv_cache_utils import resolve_none_hash_seed

    lora = (("lora", lora_name(prompt), ""),) if prompt.adapter else ()
    salt = (("cache_salt", prompt.tenant_salt),) if prompt.tenant_salt else ()
    parent = sha256_cbor(resolve_none_hash_seed(sha256_cbor))
    hashes = []
    for begin in range(0, len(prompt.token_ids) - size + 1, size):
        extra = (*lora, *salt) if begin == 0 else lora
        parent = sha256_cbor((parent, prompt.token_ids[begin : begin + size], extra or None))
        hashes.append(int.from_bytes(parent) & _LOW)
    return tuple(hashes)


def token_ids(prompt: Any) -> Sequence[int]:
    """Of a prompt as vLLM has it; empty: it is none of tokens."""
    ids: Sequence[int] = prompt.get("prompt_token_ids") or () if isinstance(prompt, dict) else ()
    return ids


def mm_hashes(prompt: Any) -> tuple[str, ...]:
    """Of its pictures and the like."""
    found = prompt.get("mm_hashes") or {}
    return tuple(str(one) for hashes in found.values() for one in hashes)
