"""What an engine is asked for, as far as its memory depends on it: settings to numbers. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from penstock.replica.vllm.start.arguments import Circumstances, defaults, named, own_settings
from penstock.replica.vllm.start.memory.shape import Shape

UTILIZATION: Final = 0.92
"""Of a device's memory, where nobody says: vLLM's default."""
_WIDE: Final = ("float", "float32")
_NARROWED: Final = {"fp8": 2, "bitsandbytes": 4}
_UNITS: Final = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY: Final = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_NUMBER: Final = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)([kmgtKMGT]?)(?:iB)?")
_GPU_STEP, _GPU_SEQUENCES = 2048, 256
_LARGE_DEVICE: Final = 70 << 30  # from which on vLLM takes larger steps
_LARGE_STEP, _LARGE_SEQUENCES = 8192, 1024


@dataclass(frozen=True, slots=True)
class Asked:
    """What decides the sum."""

    number: int  # bytes of a number: of weights that are not packed, and of activations
    kv_number: int  # of one in the KV cache
    kv_bytes: int  # that the KV cache is to have; 0: what the utilization leaves
    utilization: float
    context: int  # tokens of the longest sequence; 0: not known
    sequences: int
    step: int  # tokens of one step
    ranks: int  # devices, or processes, that share the weights
    eager: bool
    adapters: int = 0
    rank: int = 0
    narrowed: int = 1  # the weights are that much smaller once loaded
    offloaded: int = 0  # bytes of weights that stay in the machine's memory
    threads: int = 0


def asked(
    engine_args: Mapping[str, str], circumstances: Circumstances, shape: Shape, device: int
) -> Asked:
    """What these settings ask of an engine on a device of so many bytes; 0: on CPUs. Raises
    `CannotLoad` for settings of our own that cannot be used."""
    own, given = own_settings(engine_args), named(engine_args)
    said = defaults(circumstances, given, own) | given
    number = 4 if said.get("dtype") in _WIDE else 2
    large = device >= _LARGE_DEVICE
    lora = said.get("enable_lora", "false") in ("true", "1", "")
    return Asked(
        number=number,
        kv_number=_kv_number(said.get("kv_cache_dtype", "auto"), number, shape),
        kv_bytes=amount(said.get("kv_cache_memory_bytes", "")),
        utilization=_share(said.get("gpu_memory_utilization", "")),
        context=_context(said, shape),
        sequences=amount(said.get("max_num_seqs", ""))
        or (_LARGE_SEQUENCES if large else _GPU_SEQUENCES),
        step=amount(said.get("max_num_batched_tokens", ""))
        or (_LARGE_STEP if large else _GPU_STEP),
        ranks=_ranks(said, "tensor") * _ranks(said, "pipeline"),
        eager=said.get("enforce_eager", "false") in ("true", "1", ""),
        adapters=amount(said.get("max_loras", "1")) if lora else 0,
        rank=amount(said.get("max_lora_rank", "16")) if lora else 0,
        narrowed=1 if shape.packed else _NARROWED.get(said.get("quantization", ""), 1),
        offloaded=int(_decimal(said.get("cpu_offload_gb", "")) * (1 << 30)),
        threads=own.threads,
    )


def amount(text: str) -> int:
    """A number as vLLM takes it, "8192" or "8k" or "1.5G"; 0 for any other text."""
    found = _NUMBER.fullmatch(text.strip())
    if not found:
        return 0
    unit = _UNITS.get(found[2]) or _BINARY.get(found[2], 1)
    return int(float(found[1]) * unit)


def _kv_number(said: str, number: int, shape: Shape) -> int:
    if said.startswith(("fp8", "int8")) or (said == "auto" and shape.narrow_kv):
        return 1
    return {"bfloat16": 2, "float16": 2, "float32": 4}.get(said, number)


def _context(said: Mapping[str, str], shape: Shape) -> int:
    """0 where vLLM finds one that fits, or is told how many blocks there are."""
    if "num_gpu_blocks_override" in said or said.get("max_model_len") in ("auto", "-1"):
        return 0
    return amount(said.get("max_model_len", "")) or shape.longest


def _share(text: str) -> float:
    share = _decimal(text)
    return share if 0 < share <= 1 else UTILIZATION


def _ranks(said: Mapping[str, str], way: str) -> int:
    return max(1, amount(said.get(f"{way}_parallel_size", "1")))


def _decimal(text: str) -> float:
    return float(text) if re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text) else 0.0
