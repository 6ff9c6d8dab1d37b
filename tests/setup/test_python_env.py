"""The locks that .venv is made of."""

from __future__ import annotations

import pytest

import python_env


@pytest.mark.parametrize("name", ["cuda", "torch-ordinary"])
def test_ordinary_torch_is_pinned_so_that_no_other_build_of_it_fits(name: str) -> None:
    text = (python_env.LOCKS / f"{name}.txt").read_text()
    assert "\ntorch===2." in text
    assert "\ntorch==2." not in text
