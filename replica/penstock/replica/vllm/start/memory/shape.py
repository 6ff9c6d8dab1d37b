"""How large a model is, as its config says. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_BIDIRECTIONAL = "bert"
_GATED = 3  # matrices between hidden and intermediate, in all models that are common today


@dataclass(frozen=True, slots=True)
class Shape:
    """A model's measures; 0: its config does not say."""

    layers: int = 0
    hidden: int = 0
    intermediate: int = 0
    heads: int = 0
    kv_heads: int = 0
    head_dim: int = 0
    vocabulary: int = 0
    longest: int = 0  # tokens
    packed: bool = False  # its weights are quantised as they are stored
    narrow_kv: bool = False  # its config has keys and values in a byte
    encodes: bool = False  # it reads a text at once: there is no KV cache
    plain: bool = False  # each layer keeps keys and values of every token, and nothing else does

    def kv_bytes(self, number: int) -> int:
        """Of one token in all layers, in numbers of so many bytes; 0: that cannot be told."""
        return 2 * self.layers * self.kv_heads * self.head_dim * number if self.plain else 0

    def adapter_numbers(self) -> int:
        """In one adapter of rank 1 that changes all that one may change."""
        query, kv = self.heads * self.head_dim, self.kv_heads * self.head_dim
        attention = 2 * (self.hidden + query) + 2 * (self.hidden + kv)
        return self.layers * (attention + _GATED * (self.hidden + self.intermediate))

    def step_numbers(self) -> int:
        """That a step keeps of each of its tokens at its widest place."""
        return 6 * self.hidden + 3 * self.intermediate


def shape_of(config: Mapping[str, Any]) -> Shape:
    """A model's measures; what a config says in another way than most is taken as not said."""
    inner = config.get("text_config")
    said = {**config, **inner} if isinstance(inner, dict) else config
    hidden, heads = _count(said, "hidden_size"), _count(said, "num_attention_heads")
    quantised = said.get("quantization_config") or said.get("compression_config")
    return Shape(
        layers=_count(said, "num_hidden_layers"),
        hidden=hidden,
        intermediate=_count(said, "intermediate_size"),
        heads=heads,
        kv_heads=_count(said, "num_key_value_heads") or heads,
        head_dim=_count(said, "head_dim") or (hidden // heads if heads else 0),
        vocabulary=_count(said, "vocab_size"),
        longest=_count(said, "max_position_embeddings"),
        packed=bool(quantised),
        narrow_kv=isinstance(quantised, dict) and bool(quantised.get("kv_cache_scheme")),
        encodes=_BIDIRECTIONAL in str(said.get("model_type", "")) and not said.get("is_decoder"),
        plain=_is_plain(said),
    )


def _is_plain(said: Mapping[str, Any]) -> bool:
    """Whether keys and values grow with each token in each layer: no windows, no latent ones, no
    states, and known for the kinds of models that are told so by their names."""
    kinds = said.get("layer_types")
    windows = bool(said.get("sliding_window")) and said.get("use_sliding_window") is not False
    full = not isinstance(kinds, list) or set(map(str, kinds)) <= {"full_attention"}
    latent = any(said.get(name) for name in ("kv_lora_rank", "mamba_d_state", "ssm_cfg"))
    writers = said.get("architectures")
    writes = isinstance(writers, list) and any(str(w).endswith("ForCausalLM") for w in writers)
    return writes and full and not windows and not latent


def _count(said: Mapping[str, Any], name: str) -> int:
    value = said.get(name)
    return value if type(value) is int and 0 < value < 1 << 40 else 0
