"""Contents that no version names are thrown away, by a head that knows all versions alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from penstock.adapters.fitness import FamilyLimits
from penstock.control.adapter_sources.sources import MachineSources
from penstock.control.managers.adapters.library import AdapterLibrary
from penstock.control.state.cluster import ClusterView
from penstock.control.store.adapters.content import AdapterContents
from tests.fakes.control_clock import ManualClock

SHIPPED = Path("replica/penstock/replica/default_model/weights/adapters/pirate")
_WHOLE = ClusterView()
_PART = replace(_WHOLE, adapters=replace(_WHOLE.adapters, unreadable=frozenset({"pirate@1"})))


@pytest.mark.parametrize(
    ("view", "opened", "stays"),
    [
        pytest.param(_WHOLE, False, True, id="it has not begun"),
        pytest.param(replace(_WHOLE, held="of another epoch"), True, True, id="it holds still"),
        pytest.param(_PART, True, True, id="it cannot read all versions"),
        pytest.param(_WHOLE, True, False, id="it knows all"),
    ],
)
async def test_what_no_version_names_goes_only_where_the_head_knows_all_there_are(
    tmp_path: Path, view: ClusterView, opened: bool, stays: bool
) -> None:
    contents = AdapterContents(tmp_path / "adapters")
    sources = MachineSources(tmp_path / "incoming", tmp_path / "hub")
    library = AdapterLibrary(contents, sources, lambda: view, ManualClock())
    if opened:
        library.open()
    async with library.taken(SHIPPED, FamilyLimits()) as taken:
        assert contents.stored() == {taken.digest}, "it may be about to be named"
    assert (contents.stored() == {taken.digest}) is stays
