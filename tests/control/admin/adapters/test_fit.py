"""Registering an adapter for a model that the head can read: what was made for another is refused
at once, and nothing of it stays."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from penstock.adapters.version import CONTENT_FILES
from tests.control.admin.app_harness import Admin, assert_problem, running_admin
from tests.fakes.base_models import base_model
from tests.fakes.lora_adapters import random_adapter

URL = "/admin/v1/adapters"
Q = "model.layers.0.self_attn.q_proj"
Send = Callable[[Admin, Path], Awaitable[httpx.Response]]


@pytest.fixture
async def admin() -> AsyncIterator[Admin]:
    async with running_admin() as admin:
        yield admin


async def by_source(admin: Admin, directory: Path) -> httpx.Response:
    body = {"name": "a", "version": "1", "base": "one", "source": str(directory)}
    return await admin.client.post(URL, json=body)


async def by_upload(admin: Admin, directory: Path) -> httpx.Response:
    manifest = json.dumps({"name": "a", "version": "1", "base": "one"})
    files: dict[str, Any] = {"manifest": (None, manifest, "application/json")}
    for name in CONTENT_FILES:
        files[name] = (name, (directory / name).read_bytes(), "application/octet-stream")
    return await admin.client.post(URL, files=files)


@pytest.fixture(params=[by_source, by_upload])
def send(request: pytest.FixtureRequest) -> Send:
    way: Send = request.param
    return way


async def serve(admin: Admin, name: str, model: str, **engine_args: str) -> None:
    spec = {
        "engine": "vllm",
        "model": model,
        "max_adapters": 2,
        "replicas": 0,
        "engine_args": engine_args,
    }
    made = await admin.client.put(f"/admin/v1/deployments/{name}", json=spec)
    assert made.status_code == 201, made.text


async def nothing_is_kept(admin: Admin) -> bool:
    listed = (await admin.client.get(URL)).json()
    begun = list(admin.services.adapter_scratch.iterdir())
    return listed == begun == [] and admin.contents.stored() == frozenset()


async def test_an_adapter_that_fits_the_model_is_taken(
    admin: Admin, tmp_path: Path, send: Send
) -> None:
    await serve(admin, "one", str(base_model(tmp_path / "model", 64, files=2)))
    random_adapter(tmp_path / "lora", 1, width=64)
    assert (await send(admin, tmp_path / "lora")).status_code == 201


@pytest.mark.parametrize("model", ["", "penstock-mini"])
async def test_an_adapter_of_a_model_of_another_width_is_refused_at_once(
    admin: Admin, tmp_path: Path, send: Send, model: str
) -> None:
    await serve(admin, "one", model or str(base_model(tmp_path / "model", 192)))
    random_adapter(tmp_path / "lora", 1, width=96)
    reply = await send(admin, tmp_path / "lora")
    assert_problem(reply, 422, Q, "is 96 to 96 wide in it, 192 to 192 in its base model")
    assert await nothing_is_kept(admin)


async def test_an_adapter_of_modules_that_the_model_lacks_is_refused_at_once(
    admin: Admin, tmp_path: Path, send: Send
) -> None:
    await serve(admin, "one", str(base_model(tmp_path / "model", 64)))
    random_adapter(tmp_path / "lora", 1, width=64, modules=("q_proj", "x_proj"))
    reply = await send(admin, tmp_path / "lora")
    assert_problem(reply, 422, "layers.0.self_attn.x_proj, which its base model does not have")
    assert await nothing_is_kept(admin)


async def test_what_was_refused_can_be_registered_once_it_is_right(
    admin: Admin, tmp_path: Path, send: Send
) -> None:
    await serve(admin, "one", str(base_model(tmp_path / "model", 64)))
    random_adapter(tmp_path / "wrong", 1, width=96)
    random_adapter(tmp_path / "right", 1, width=64)
    assert (await send(admin, tmp_path / "wrong")).status_code == 422
    assert (await send(admin, tmp_path / "right")).status_code == 201


@pytest.mark.parametrize("model", ["/only/on/other/machines", "acme/not-cached"])
async def test_for_a_model_that_the_head_cannot_read_the_shapes_are_left_to_the_replicas(
    admin: Admin, tmp_path: Path, send: Send, model: str
) -> None:
    await serve(admin, "one", model)
    random_adapter(tmp_path / "lora", 1, width=96)
    assert (await send(admin, tmp_path / "lora")).status_code == 201


async def test_for_a_model_at_several_revisions_the_shapes_are_left_to_the_replicas(
    admin: Admin, tmp_path: Path
) -> None:
    model = str(base_model(tmp_path / "model", 64))
    await serve(admin, "one", model, revision="v1")
    random_adapter(tmp_path / "lora", 1, width=96)
    assert_problem(await by_source(admin, tmp_path / "lora"), 422, "96 to 96 wide")
    await serve(admin, "two", model)
    assert (await by_source(admin, tmp_path / "lora")).status_code == 201
