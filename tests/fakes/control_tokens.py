"""Tokens of the admin API, as tests use them."""

from __future__ import annotations

from pathlib import Path


def bearer(file: Path) -> dict[str, str]:
    """The headers of who may read this file, as the head wrote it."""
    return {"authorization": f"Bearer {file.read_text().strip()}"}
