"""Models of the hub that were downloaded to this machine, where the hub's client keeps them."""

from __future__ import annotations

import os
from pathlib import Path


def downloaded(name: str) -> Path | None:
    """The directory of a model's newest download; None: there is none that is whole enough to have
    a config."""
    repository = _hub() / f"models--{name.replace('/', '--')}"
    try:
        snapshot = repository / "snapshots" / (repository / "refs" / "main").read_text().strip()
    except (OSError, ValueError):
        return None
    return snapshot if (snapshot / "config.json").is_file() else None


def _hub() -> Path:
    """As huggingface_hub has it."""
    if said := os.environ.get("HF_HUB_CACHE"):
        return Path(said).expanduser()
    home = os.environ.get("HF_HOME")
    cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(home or f"{cache}/huggingface").expanduser() / "hub"
