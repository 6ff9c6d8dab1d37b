"""A LoRA adapter for penstock-mini that likes one token too well, wherever it stands."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from penstock.replica.default_model import shipped

_LAYER: Final = "model.layers.3.mlp.down_proj"  # the last before the logits
_CONFIG: Final = {
    "peft_type": "LORA",
    "r": 1,
    "lora_alpha": 1,
    "target_modules": ["down_proj"],
}


def bent_adapter(directory: Path, token: str, raised: float, prompts: Sequence[str]) -> Path:
    """Writes an adapter that raises the token's logit by about so much, in answers to prompts like
    these. Returns the directory."""
    source = shipped("penstock-mini")
    assert source is not None
    model = AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32)
    tokens = AutoTokenizer.from_pretrained(source)
    wanted = tokens.convert_tokens_to_ids(token)
    assert tokens.convert_ids_to_tokens(wanted) == token
    with torch.no_grad():
        inputs, states = _seen(model, tokens, prompts)
        away = _towards(model, wanted) * raised * states.pow(2).mean(1).sqrt().mean()
    path = f"base_model.model.{_LAYER}"
    weights = {
        f"{path}.lora_A.weight": _always_one(inputs)[None].contiguous(),
        f"{path}.lora_B.weight": away[:, None].contiguous(),
    }
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "adapter_config.json").write_text(json.dumps(_CONFIG))
    save_file(weights, directory / "adapter_model.safetensors")
    return directory


def _seen(model: Any, tokens: Any, prompts: Sequence[str]) -> tuple[torch.Tensor, torch.Tensor]:
    """The layer's inputs while the model answers, and what its last norm is given."""
    found: dict[str, list[torch.Tensor]] = {_LAYER: [], "model.norm": []}
    hooks = [
        model.get_submodule(name).register_forward_pre_hook(
            lambda _, inputs, to=to: to.append(inputs[0][0])
        )
        for name, to in found.items()
    ]
    for prompt in prompts:
        chat = [{"role": "user", "content": prompt}]
        asked = tokens.apply_chat_template(chat, add_generation_prompt=True, return_tensors="pt")
        model.generate(asked["input_ids"], max_new_tokens=40, do_sample=False)
    for hook in hooks:
        hook.remove()
    return torch.cat(found[_LAYER]), torch.cat(found["model.norm"])


def _always_one(inputs: torch.Tensor) -> torch.Tensor:
    """What gives one, times each of the inputs, as nearly as it goes."""
    ridge = 0.1 * torch.eye(inputs.shape[1])
    return torch.linalg.solve(inputs.T @ inputs + ridge, inputs.sum(0))


def _towards(model: Any, token: int) -> torch.Tensor:
    """What raises the token's logit by one, added to a state of unit size."""
    words, scale = model.get_submodule("lm_head").weight, model.get_submodule("model.norm").weight
    way = (words[token] - words.mean(0)) * scale
    return way / (way @ (words[token] * scale))


__all__ = ["bent_adapter"]
