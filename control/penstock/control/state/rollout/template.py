"""What a replica is made of, and the digest by which replicas of the same are told. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass, field
from enum import StrEnum

from penstock.adapters.adapter import BaseModelFamily
from penstock.adapters.lora_config import LARGEST_RANK
from penstock.control.declared.fields import PAIRS, Form, check, chosen, said, setting
from penstock.control.errors import InvalidSpec
from penstock.control.state.providers.settings import MANAGED, calls_tools
from penstock.control.state.switch import Switch, switch

ENGINES = ("vllm", "simulated", *MANAGED)
MOST_ADAPTERS = 512
USUAL_ADAPTERS = 4
"""Slots of an engine that was told a rank for adapters, and not how many."""
USUAL_RANK = 16
"""The largest rank of an engine that was told how many adapters, and not how large."""

_SETTING = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,127}")


class Sleep(StrEnum):
    """What a replica that is not wanted for now does in place of ending."""

    OFF = "off"  # it ends
    WEIGHTS_IN_MEMORY = "1"  # its weights wait in its machine's memory
    NOTHING_KEPT = "2"  # they are read again when it is woken

    @property
    def level(self) -> int:
        """As vLLM counts; 0: off."""
        return 0 if self is Sleep.OFF else int(self)


SLEEPERS = MICROSERVERS = ("vllm", "simulated")
"""Engines that can sleep, and those that can serve MicroServing."""


@dataclass(frozen=True, slots=True)
class Template:
    """What a replica is made of: changing any of it takes new replicas."""

    engine: str = field(
        metadata=said(
            "what answers; bedrock, openai and canned without a model on the node", choices=ENGINES
        )
    )
    model: str = field(
        metadata=said(
            "path, Hugging Face id, a name that the replica ships, or the provider's id",
            examples=("penstock-mini",),
        )
    )
    engine_args: tuple[tuple[str, str], ...] = setting(
        "the engine's own settings, without dashes in front; never a secret: where it"
        " is, such as api_key_env or api_key_file",
        (),
        form=PAIRS,
        examples=({"max_model_len": "2048"},),
    )
    max_adapters: int = setting(
        "{unit} that an engine holds at once; 0: none, or a few by their rank",
        0,
        ge=0,
        le=MOST_ADAPTERS,
        unit="adapters",
    )
    max_adapter_rank: int = setting(
        "0: none, or the usual one by max_adapters", 0, ge=0, le=LARGEST_RANK
    )
    sleep: Sleep = setting(
        "what becomes of a replica that is not wanted for now, of the engines vllm and simulated:"
        " off: it ends; 1: it sleeps, its weights in the machine's memory; 2: without them",
        Sleep.OFF,
        form=Form(str, lambda said: chosen(Sleep, "sleep", str(said), InvalidSpec)),
        examples=("1",),
    )
    microserving: Switch = setting(
        "whether engines, of vllm and simulated, offer the calls that move KV between them",
        Switch.OFF,
        form=switch("microserving"),
    )
    microserving_rest: Switch = setting(
        "whether these are also offered by REST, on a port of each replica",
        Switch.OFF,
        form=switch("microserving_rest"),
    )

    @property
    def adapter_slots(self) -> int:
        """Adapters that a replica can hold at once: some as soon as either setting is made."""
        return self.max_adapters or (USUAL_ADAPTERS if self.max_adapter_rank else 0)

    @property
    def adapter_rank(self) -> int:
        """The largest rank of an adapter that a replica takes; 0 where it takes none."""
        return self.max_adapter_rank or (USUAL_RANK if self.max_adapters else 0)

    @property
    def is_managed(self) -> bool:
        """Whether a provider answers, or nothing but a text: no engine that could die."""
        return self.engine in MANAGED

    @property
    def calls_tools(self) -> bool:
        """Whether a request that brings tools may be sent to a replica."""
        return calls_tools(self.engine, self.engine_args)

    @property
    def family(self) -> BaseModelFamily:
        """Which adapters fit: those that were made for this model."""
        return BaseModelFamily(self.model)


def template_digest(template: Template) -> str:
    """SHA-256 over the canonical JSON of a template, hex. What came into it later counts only where
    it is set, and what has left it as empty, so that a new head takes no new replicas."""
    unset = (
        *(("max_adapters", 0), ("max_adapter_rank", 0), ("sleep", Sleep.OFF)),
        *(("microserving", Switch.OFF), ("microserving_rest", Switch.OFF)),
    )
    said = {key: value for key, value in asdict(template).items() if (key, value) not in unset}
    text = json.dumps({**said, "adapters": []}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def check_template(template: Template) -> None:
    """Raises `InvalidSpec` for what no replica could be made of."""
    if template.engine not in ENGINES:
        raise InvalidSpec(f"engine is {template.engine!r}: it must be one of {', '.join(ENGINES)}")
    if not template.model.strip() or not template.model.isprintable():
        raise InvalidSpec(
            f"model is {template.model!r}: name a path, a hub id, penstock-mini or penstock-embed"
        )
    for key, _ in template.engine_args:
        if not _SETTING.fullmatch(key):
            raise InvalidSpec(
                f"engine_args has the key {key!r}: name the setting without dashes in front, "
                "such as max_model_len"
            )
    if template.is_managed and (template.max_adapters or template.max_adapter_rank):
        raise InvalidSpec(
            f"the engine {template.engine} takes no adapters: leave out max_adapters and"
            " max_adapter_rank"
        )
    if template.sleep is not Sleep.OFF and template.engine not in SLEEPERS:
        raise InvalidSpec(f"the engine {template.engine} cannot sleep: leave out sleep")
    if template.microserving and template.engine not in MICROSERVERS:
        raise InvalidSpec(f"the engine {template.engine} has no KV to move: leave out microserving")
    if template.microserving_rest and not template.microserving:
        raise InvalidSpec("microserving_rest is on and microserving is off: set it on, too")
    check(template, InvalidSpec)
