"""Asking the shipped model, greedily, by plain transformers, alone and with its adapters."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from penstock.replica.default_model import WEIGHTS
from tools.default_model.grammar import Dialogue, Heard, Said
from tools.default_model.grammar.dialogues import Tool

END = "<|end|>"
TOKENIZER = AutoTokenizer.from_pretrained(WEIGHTS / "model", padding_side="left")
Message = dict[str, Any]


@cache
def _model(adapter: str) -> Any:
    """The model, with an adapter's weights added to its own."""
    model = AutoModelForCausalLM.from_pretrained(WEIGHTS / "model", dtype=torch.float32)
    if adapter:
        place = WEIGHTS / "adapters" / adapter
        config = json.loads((place / "adapter_config.json").read_text())
        lora = load_file(place / "adapter_model.safetensors")
        for name, a in lora.items():
            if name.endswith("lora_A.weight"):
                b = lora[name.replace("lora_A", "lora_B")]
                path = name.removeprefix("base_model.model.").removesuffix(".lora_A.weight")
                delta = (b.float() @ a.float()) * config["lora_alpha"] / config["r"]
                model.get_submodule(path).weight.data += delta
    return model.eval()


def rendered(messages: list[Message], tools: list[Any] | None = None, **options: Any) -> str:
    """What the chat template makes of them."""
    text = TOKENIZER.apply_chat_template(messages, tools=tools or None, tokenize=False, **options)
    assert isinstance(text, str)
    return text


def completed(prompts: list[str], adapter: str = "", limit: int = 120) -> list[str]:
    """How the model goes on, with <|end|> where it ended by itself."""
    before = torch.get_num_threads()
    # The model is too small to gain by more, and threads that wait for one another spin: with
    # another test beside them on two cores, two take twice the time of one.
    torch.set_num_threads(1)
    try:
        given = TOKENIZER(prompts, padding=True, return_tensors="pt", add_special_tokens=False)
        given.pop("token_type_ids", None)
        with torch.no_grad():
            made = _model(adapter).generate(**given, do_sample=False, max_new_tokens=limit)
    finally:
        torch.set_num_threads(before)
    texts = TOKENIZER.batch_decode(made[:, given["input_ids"].shape[1] :])
    return [text.replace("<|pad|>", "") for text in texts]


def answers_to(chats: list[list[Message]], adapter: str = "", limit: int = 120) -> list[str]:
    """The answers to conversations, with <|end|> where they ended by themselves."""
    prompts = [rendered(chat, add_generation_prompt=True) for chat in chats]
    return completed(prompts, adapter, limit)


def as_messages(dialogue: Dialogue) -> list[Message]:
    """A dialogue as a request to the API has it."""
    return [_as_message(message) for message in dialogue.messages]


def _as_message(message: Heard | Said) -> Message:
    if isinstance(message, Heard):
        return {"role": message.role, "content": message.text}
    text = "".join(words for words, _ in message.pieces)
    calls = [
        {"function": {"name": call.name, "arguments": dict(call.arguments)}}
        for call in message.calls
    ]
    return {"role": "assistant", "content": text or None} | ({"tool_calls": calls} if calls else {})


def definitions(dialogue: Dialogue) -> list[Any]:
    """The tools of a dialogue as a request to the API has them."""
    return [_definition(tool) for tool in dialogue.tools]


def _definition(tool: Tool) -> dict[str, Any]:
    parameters = {
        "type": "object",
        "properties": {
            one.name: {"type": one.kind} | ({"enum": list(one.options)} if one.options else {})
            for one in tool.fields
        },
        "required": [one.name for one in tool.fields if one.required],
    }
    return {"type": "function", "function": {"name": tool.name, "parameters": parameters}}
