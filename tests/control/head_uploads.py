"""Uploads of adapters to a head that is a process, and what it has of them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import httpx

from penstock.adapters.version import is_digest
from penstock.control.store.adapters.content import INCOMING
from tests.control.adapter_sources.files import FILES
from tests.control.head_process import HeadProcess

EDGE = "edge"


def upload(name: str, files: Mapping[str, bytes] = FILES) -> bytes:
    """The body of an upload."""
    manifest = json.dumps({"name": name, "version": "1", "base": "mini"}).encode()
    begin = f"--{EDGE}\r\ncontent-disposition: form-data; name=".encode()
    parts = {"manifest": manifest, **files}
    body = b"".join(begin + f'"{k}"\r\n\r\n'.encode() + v + b"\r\n" for k, v in parts.items())
    return body + f"--{EDGE}--\r\n".encode()


async def sent(head: HeadProcess, body: bytes | AsyncIterator[bytes]) -> httpx.Response:
    """What an upload is answered."""
    headers = {**head.authorization, "content-type": f"multipart/form-data; boundary={EDGE}"}
    url = f"http://{head.admin}/admin/v1/adapters"
    return await head.client.post(url, content=body, headers=headers)


def coming_in(head: HeadProcess) -> list[Path]:
    """What is being taken in, or was left so."""
    incoming = head.data_dir / "adapters" / INCOMING
    return list(incoming.iterdir()) if incoming.is_dir() else []


def stored(head: HeadProcess) -> set[str]:
    """The digests of all contents."""
    found = (head.data_dir / "adapters").iterdir()
    return {each.name for each in found if is_digest(each.name)}


async def registered(head: HeadProcess) -> set[str]:
    """All versions."""
    return {each["adapter"] for each in await head.get("adapters")}
