"""Models as large as real ones that take no room: configs, headers of weights, and holes."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

LLAMA_8B: Mapping[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 8192,
    "dtype": "bfloat16",
    "tie_word_embeddings": False,
}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemm", "zero_point": True}
BYTES = {"I32": 4, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1}

Tensors = Mapping[str, tuple[str, tuple[int, ...]]]


def llama_tensors(*, awq: bool, dtype: str = "BF16") -> dict[str, tuple[str, tuple[int, ...]]]:
    """Those of Llama 3 8B, as they are or as AWQ packs them."""
    dtype = "F16" if awq else dtype
    ends = {name: (dtype, (128256, 4096)) for name in ("model.embed_tokens", "lm_head")}
    found: dict[str, tuple[str, tuple[int, ...]]] = {f"{k}.weight": v for k, v in ends.items()}
    found["model.norm.weight"] = (dtype, (4096,))
    for layer in range(32):
        at = f"model.layers.{layer}"
        for norm in ("input_layernorm", "post_attention_layernorm"):
            found[f"{at}.{norm}.weight"] = (dtype, (4096,))
        for module, (wide, out) in LINEAR.items():
            if awq:
                found[f"{at}.{module}.qweight"] = ("I32", (wide, out // 8))
                found[f"{at}.{module}.qzeros"] = ("I32", (wide // 128, out // 8))
                found[f"{at}.{module}.scales"] = ("F16", (wide // 128, out))
            else:
                found[f"{at}.{module}.weight"] = (dtype, (out, wide))
    return found


LINEAR = {
    "self_attn.q_proj": (4096, 4096),
    "self_attn.k_proj": (4096, 1024),
    "self_attn.v_proj": (4096, 1024),
    "self_attn.o_proj": (4096, 4096),
    "mlp.gate_proj": (4096, 14336),
    "mlp.up_proj": (4096, 14336),
    "mlp.down_proj": (14336, 4096),
}


def write_weights(path: Path, tensors: Tensors) -> int:
    """A safetensors file of these whose data is a hole; returns the bytes of the data."""
    header: dict[str, Any] = {}
    at = 0
    for name, (dtype, shape) in tensors.items():
        end = at + prod(shape) * BYTES[dtype]
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + at)
    return at


def write_model(directory: Path, config: Mapping[str, Any], tensors: Tensors) -> Path:
    """A model's directory."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(json.dumps(config))
    (directory / "tokenizer.json").write_text("{}")
    write_weights(directory / "model.safetensors", tensors)
    return directory


def llama_8b_awq(directory: Path) -> Path:
    """Llama 3 8B as AWQ packs it: 5.7 GB of weights."""
    return write_model(directory, {**LLAMA_8B, "quantization_config": AWQ}, llama_tensors(awq=True))


def llama_8b(directory: Path) -> Path:
    """Llama 3 8B as it is: 16.1 GB of weights."""
    return write_model(directory, LLAMA_8B, llama_tensors(awq=False))
