"""Adapters and models in the cache of Hugging Face's tools on this machine; nothing is downloaded.

<cache>/models--<org>--<name>/refs/<revision>     a commit's hash, as text
<cache>/models--<org>--<name>/snapshots/<commit>  links to the files in blobs/
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from penstock.adapters.shown import shown
from penstock.control.adapter_sources.directories import adapter_directory, listed, names_in
from penstock.control.errors import BadAdapter

HUB_SCHEME: Final = "hf:"
_DEFAULT_REVISION: Final = "main"
# The hub's own rule, for both halves of a repository's id.
_PART: Final = r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,94}[A-Za-z0-9_])?"
_REPOSITORY: Final = re.compile(f"{_PART}/{_PART}", re.ASCII)
_MODEL: Final = re.compile(f"{_PART}(?:/{_PART})?", re.ASCII)  # the hub's oldest have no owner
_COMMIT: Final = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_LONGEST_HASH: Final = 64


def hub_cache(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the cache is for a process with these variables, by the rules of huggingface_hub."""
    home = environ.get("HF_HOME") or os.path.join(
        environ.get("XDG_CACHE_HOME") or os.path.join("~", ".cache"), "huggingface"
    )
    cache = environ.get("HF_HUB_CACHE") or environ.get("HUGGINGFACE_HUB_CACHE")
    return Path(os.path.expandvars(os.path.expanduser(cache or os.path.join(home, "hub"))))


def cached_snapshot(source: str, cache: Path, max_bytes: int) -> Path:
    """The directory of `hf:org/name[@revision]`. Raises `BadAdapter` with what is there instead."""
    repository, at, revision = source.removeprefix(HUB_SCHEME).partition("@")
    if not at:
        revision = _DEFAULT_REVISION
    _check(source, repository, revision)
    place = cache / f"models--{repository.replace('/', '--')}"
    if not place.is_dir():
        raise BadAdapter(
            f"{shown(source)}: {shown(str(cache))}, the Hugging Face cache of the head, has no "
            f"{place.name}; the head downloads nothing: run `hf download "
            f"{repository}` on its machine as its user, or set HF_HUB_CACHE for it"
        )
    commit = _commit_of(place, revision)
    snapshot = place / "snapshots" / commit
    if not commit or not snapshot.is_dir():
        raise BadAdapter(
            f"{shown(source)}: {shown(str(place))} has no revision {shown(revision)}, but refs "
            f"{listed(names_in(place / 'refs'))} and snapshots "
            f"{listed(names_in(place / 'snapshots'))}; run `hf download {repository} --revision "
            "...` on the head's machine, or name one of those"
        )
    return adapter_directory(snapshot, max_bytes, f"{shown(source)}, in {shown(str(snapshot))},")


def cached_model(model: str, revision: str, cache: Path) -> Path | None:
    """The directory of a model of the hub at a revision; none where the cache does not have it."""
    if not _MODEL.fullmatch(model):
        return None
    place = cache / f"models--{model.replace('/', '--')}"
    commit = _commit_of(place, revision)
    snapshot = place / "snapshots" / commit
    return snapshot if commit and snapshot.is_dir() else None


def _check(source: str, repository: str, revision: str) -> None:
    if not _REPOSITORY.fullmatch(repository) or "--" in repository or ".." in repository:
        raise BadAdapter(f"{shown(source)} names no repository: write hf:org/name[@revision]")
    if not revision.isprintable() or {"", ".", ".."} & set(revision.split("/")):
        raise BadAdapter(
            f"{shown(source)} names no revision behind the @: write a branch, a tag or a commit"
        )


def _commit_of(place: Path, revision: str) -> str:
    """The commit that a revision is at; empty: this cache knows none."""
    try:
        with (place / "refs" / revision).open("rb") as ref:
            told = ref.read(_LONGEST_HASH + 2).decode("ascii", "replace").strip()
    except (OSError, ValueError):
        told = revision
    return told if _COMMIT.fullmatch(told) else ""
