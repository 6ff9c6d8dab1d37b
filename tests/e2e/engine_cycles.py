"""Engines that are started, asked and given back again and again, and what that leaves behind."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.e2e.system import System, eventually

MINI = "penstock-mini"
WEIGHTS = Path(__file__).parents[2] / "replica/penstock/replica/default_model/weights/model"
ZYGOTE = "penstock.replica.warm_pool"
Json = dict[str, Any]


class Engines:
    """The Engines API of a system."""

    def __init__(self, system: System) -> None:
        self._system = system
        url = f"http://127.0.0.1:{system.admin_port}/admin/v1"
        token = {"authorization": f"Bearer {system.admin_token}"}
        self._admin = httpx.Client(base_url=url, headers=token, trust_env=False, timeout=120)
        self._clients = httpx.Client(base_url=system.base_url, trust_env=False, timeout=60)

    def start(self, model: str, **body: Any) -> Json:
        """An engine that is ready."""
        reply = self._admin.post("/engines", json={"model": model, **body})
        assert reply.status_code == 201, reply.text
        told: Json = reply.json()
        return told

    def stop(self, engine: Json) -> None:
        reply = self._admin.delete(f"/engines/{engine['id']}")
        assert reply.is_success, reply.text

    def says(self, model: str) -> str:
        """A digest of what a model answers, greedily, to a chat and to plain words."""
        asked = {"model": model, "max_tokens": 24, "temperature": 0}
        chat = self._clients.post(
            "/chat/completions", json={**asked, "messages": [{"role": "user", "content": "Hello"}]}
        )
        plain = self._clients.post("/completions", json={**asked, "prompt": "Once upon a time"})
        assert (chat.status_code, plain.status_code) == (200, 200), chat.text + plain.text
        first, second = (reply.json()["choices"][0] for reply in (chat, plain))
        words = json.dumps([first["message"]["content"], second["text"]])
        return hashlib.sha256(words.encode()).hexdigest()

    def close(self) -> None:
        self._admin.close()
        self._clients.close()


def pool(system: System) -> Json:
    """The warm pool of the one node; empty until an agent has told of it."""
    (node,) = system.admin("nodes")
    found: Json = node["warm_pool"] or {}
    return found


def filled(system: System, *, within: float = 150) -> Json:
    """The pool once as many members wait as are to. A zygote imports when nobody else computes."""

    def full() -> Json | None:
        found = pool(system)
        is_told = found and found["target"] and found["waiting"] == found["target"]
        # What the head was told last may be of a pool that is no more.
        return found if is_told and len(pool_processes(system)) == 1 + found["target"] else None

    return eventually(full, within=within, what="a pool that is full")


def pool_processes(system: System) -> list[psutil.Process]:
    """The system's zygote, and its members that wait."""
    agents = system.processes("penstock", " node ")
    below = [each for agent in agents for each in agent.children(recursive=True)]
    return [each for each in below if _is_of_a_pool(each)]


def _is_of_a_pool(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return ZYGOTE in process.cmdline()
    return False


def proportional(processes: Iterable[psutil.Process]) -> int:
    """Bytes of their own that they take together; a page that several share counts once.

    Files that are mapped are left out: what these count depends on who else on the machine has
    them mapped, such as another test's vLLM.
    """
    kept = [Path(f"/proc/{each.pid}/smaps_rollup").read_text() for each in processes]
    found = [line.split() for text in kept for line in text.splitlines()]
    return sum(int(words[1]) << 10 for words in found if words[0] == "Pss_Anon:")


def other_model(folder: Path) -> Path:
    """A model of the same shape with other weights, another tokenizer and another template."""
    made = folder / "other"
    shutil.copytree(WEIGHTS, made)
    _with_other_letters(made / "tokenizer.json")
    _with_other_weights(made / "model.safetensors")
    _with_other_template(made)
    return made


def _with_other_letters(tokenizer: Path) -> None:
    """Two words of the vocabulary change places."""
    told = json.loads(tokenizer.read_text())
    vocabulary: dict[str, int] = told["model"]["vocab"]
    a, e = (vocabulary[letter] for letter in "ae")
    vocabulary |= {"a": e, "e": a}
    tokenizer.write_text(json.dumps(told))


def _with_other_weights(path: Path) -> None:
    """The rows of one of its matrices in reverse."""
    raw = bytearray(path.read_bytes())
    begin = 8 + int.from_bytes(raw[:8], "little")
    tensor = json.loads(raw[8:begin])["model.layers.0.mlp.down_proj.weight"]
    first, last = (begin + offset for offset in tensor["data_offsets"])
    width = (last - first) // tensor["shape"][0]
    rows = [raw[at : at + width] for at in range(first, last, width)]
    raw[first:last] = b"".join(reversed(rows))
    path.write_bytes(raw)


def _with_other_template(model: Path) -> None:
    template = model / "chat_template.jinja"
    template.write_text("{{ 'Say it again. ' }}" + template.read_text())


def killed(processes: Iterable[psutil.Process]) -> None:
    """kill -9 of each that still runs."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
