"""Adapters that stood in deployments become versions and aliases that mean the same."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.adapters.version import VersionState
from penstock.control.errors import BadAdapter
from penstock.control.managers.adapters.adoption import AdapterAdoption
from penstock.control.managers.adapters.library import AdapterLibrary
from penstock.control.managers.cluster_store import ClusterStore
from penstock.control.state.adapters.registry import AdapterRegistry
from penstock.control.state.rollout.deployment import AdapterBinding, created
from penstock.control.store.adapters.content import AdapterContents
from penstock.control.store.store import Author
from tests.adapters.examples import ref
from tests.fakes.control_clock import ManualClock
from tests.fakes.control_store import MemoryStore
from tests.fakes.control_values import NOON, UID, spec

SHIPPED = Path("replica/penstock/replica/default_model/weights/adapters").resolve()


class Directories:
    """Sources by name; others are nowhere."""

    def __init__(self) -> None:
        self.meanwhile: Callable[[], object] = int  # happens while one is fetched

    @contextmanager
    def fetched(self, source: str, max_bytes: int) -> Iterator[Path]:
        self.meanwhile()
        if not (SHIPPED / source).is_dir():
            raise BadAdapter(f"{source} is not there")
        yield SHIPPED / source


class World:
    """A head whose store has deployments with bindings."""

    def __init__(self, contents: AdapterContents) -> None:
        clock = ManualClock()
        self.cluster = ClusterStore(MemoryStore(), clock)
        self.contents = contents
        self.sources = Directories()
        self.library = AdapterLibrary(contents, self.sources, self.cluster.view, clock)
        self.adoption = AdapterAdoption(self.cluster, self.library, clock)

    async def adopt(self, **bindings: tuple[AdapterBinding, ...]) -> None:
        for name, bound in bindings.items():
            template = replace(spec().template, max_adapters=4)
            wanted = created(replace(spec(name=name), template=template), NOON, uid=UID + name)
            found = replace(wanted, bindings=bound, template_digest="as it was")
            author = Author("an older head", "deploy")
            await self.cluster.apply(lambda view, d=found: view.with_deployment(d), author)  # type: ignore[misc]
        await self.adoption.adopt()

    async def change(self, step: Callable[[AdapterRegistry], AdapterRegistry]) -> None:
        """What an operator does to the registry."""
        author = Author("an operator", "change it")
        await self.cluster.apply(lambda v: replace(v, adapters=step(v.adapters)), author)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(AdapterContents(tmp_path / "adapters"))


PIRATE = AdapterBinding("sea", "pirate@1", "pirate")


async def test_a_binding_becomes_a_live_version_and_its_alias(world: World) -> None:
    await world.adopt(mini=(PIRATE,))
    view = world.cluster.view()
    version = view.adapters.version("pirate@1")
    assert (version.state, version.manifest.source) == (VersionState.LIVE, "pirate")
    assert view.adapters.alias("mini", "sea").target.refs == (ref("pirate@1"),)
    deployment = view.deployment("mini")
    assert (deployment.bindings, deployment.template_digest) == ((), "as it was")
    assert world.contents.stored() == {version.manifest.digest}


async def test_two_deployments_may_bind_the_same(world: World) -> None:
    await world.adopt(mini=(PIRATE,), other=(PIRATE,))
    view = world.cluster.view()
    assert list(view.adapters.versions) == [ref("pirate@1")]
    assert set(view.adapters.aliases) == {"mini:sea", "other:sea"}


async def test_one_name_for_two_contents_becomes_two_names(world: World) -> None:
    await world.adopt(mini=(PIRATE,), other=(AdapterBinding("sea", "pirate@1", "json"),))
    adapters = world.cluster.view().adapters
    (mine,), (others,) = (adapters.alias(name, "sea").target.refs for name in ("mini", "other"))
    assert mine == ref("pirate@1")
    assert others.version.startswith("1-")
    assert adapters.versions[mine].manifest.digest != adapters.versions[others].manifest.digest


async def test_one_that_cannot_be_read_stays_and_keeps_the_others_from_nothing(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    lost = AdapterBinding("lost", "lost@1", "nowhere")
    await world.adopt(mini=(lost, PIRATE))
    view = world.cluster.view()
    assert view.deployment("mini").bindings == (lost,)
    assert "mini:sea" in view.adapters.aliases
    assert "nobody can ask for mini:lost: nowhere is not there" in caplog.text


async def test_one_whose_alias_an_operator_has_set_since_is_forgotten(world: World) -> None:
    await world.adopt(mini=(PIRATE,))
    await world.adopt(mini=(AdapterBinding("sea", "lost@1", "nowhere"),))
    view = world.cluster.view()
    assert view.deployment("mini").bindings == ()
    assert view.adapters.alias("mini", "sea").target.refs == (ref("pirate@1"),)


async def test_one_whose_alias_an_operator_sets_while_it_is_fetched_is_forgotten(
    world: World,
) -> None:
    await world.adopt(mini=(PIRATE,))
    alias = world.cluster.view().adapters.alias("mini", "sea")
    await world.change(lambda adapters: adapters.without_alias(alias))
    loop = asyncio.get_running_loop()

    def set_again() -> None:
        setting = world.change(lambda adapters: adapters.with_alias(alias))
        asyncio.run_coroutine_threadsafe(setting, loop).result()

    world.sources.meanwhile = set_again
    await world.adopt(mini=(AdapterBinding("sea", "json@1", "json"),))
    view = world.cluster.view()
    assert view.deployment("mini").bindings == ()
    assert view.adapters.alias("mini", "sea") == alias
    assert list(view.adapters.versions) == [ref("pirate@1")]


async def test_one_whose_version_was_retired_takes_another_name(world: World) -> None:
    await world.adopt(mini=(PIRATE,))
    adapters = world.cluster.view().adapters
    await world.change(lambda adapters: adapters.without_alias(adapters.alias("mini", "sea")))
    retired = replace(adapters.version("pirate@1"), state=VersionState.RETIRED)
    await world.change(lambda adapters: adapters.with_version(retired))
    await world.adopt(other=(PIRATE,), third=(PIRATE,))
    adapters = world.cluster.view().adapters
    (others,), (thirds,) = (adapters.alias(name, "sea").target.refs for name in ("other", "third"))
    assert others == thirds
    assert others.version.startswith("1-")
    assert adapters.versions[others].state is VersionState.LIVE
    assert adapters.version("pirate@1").state is VersionState.RETIRED


async def test_adopting_twice_changes_nothing(world: World) -> None:
    await world.adopt(mini=(PIRATE,))
    before = world.cluster.view()
    await world.adoption.adopt()
    assert world.cluster.view() is before
