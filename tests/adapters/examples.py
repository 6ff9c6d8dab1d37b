"""Adapters of the tests: small ones that are right, for each test to break."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from penstock.adapters.adapter import AdapterRef, BaseModelFamily
from penstock.adapters.lora_config import LoraConfig
from penstock.adapters.safetensors import Tensor
from penstock.adapters.version import (
    CONFIG_FILE,
    WEIGHTS_FILE,
    AdapterVersion,
    Manifest,
    StoredFile,
    VersionState,
)

NOW = datetime(2026, 1, 2, tzinfo=UTC)
MINI = BaseModelFamily("mini")
CONFIG: dict[str, Any] = {
    "peft_type": "LORA",
    "r": 8,
    "lora_alpha": 16,
    "target_modules": ["q_proj", "up_proj"],
}


def config(**fields: Any) -> LoraConfig:
    """A config that is read from JSON."""
    return LoraConfig.parse(json.dumps(CONFIG | fields).encode())


def pair(module: str, rank: int = 8, width: int = 16) -> list[Tensor]:
    """Both halves of a module's LoRA."""
    return [
        Tensor(f"base_model.model.{module}.lora_A.weight", "BF16", (rank, width), 0, 0),
        Tensor(f"base_model.model.{module}.lora_B.weight", "BF16", (width, rank), 0, 0),
    ]


def header(tensors: dict[str, Any]) -> bytes:
    """A safetensors header, without its length."""
    return json.dumps(tensors).encode()


def safetensors(tensors: dict[str, Any], data: bytes) -> bytes:
    """A whole file."""
    head = header(tensors)
    return struct.pack("<Q", len(head)) + head + data


def ref(text: str) -> AdapterRef:
    """`name@version`."""
    return AdapterRef.parse(text)


def version(
    text: str,
    content: str = "some weights",
    state: VersionState = VersionState.CANDIDATE,
    family: BaseModelFamily = MINI,
    **fields: Any,
) -> AdapterVersion:
    """A registered version whose bytes are told by `content`."""
    weights = hashlib.sha256(content.encode()).hexdigest()
    files = (StoredFile(CONFIG_FILE, "c" * 64, 10), StoredFile(WEIGHTS_FILE, weights, 1000))
    manifest = Manifest(files, family, 8, ("q_proj",), "upload", NOW, "alice", **fields)
    return AdapterVersion(ref(text), manifest, state)


def known(*versions: AdapterVersion) -> dict[AdapterRef, AdapterVersion]:
    """A registry of these."""
    return {version.ref: version for version in versions}


def refs(texts: Iterable[str]) -> frozenset[AdapterRef]:
    """Several names."""
    return frozenset(map(ref, texts))
