"""What the control plane knows of vLLM's settings is what the tested vLLM has."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.replica.vllm.exports.setting_names import flags_of_vllm, module

_COMMITTED = Path(__file__).parents[4] / "control/penstock/control/state/rollout/vllm_settings.py"


def test_the_module_names_settings_once_and_in_order() -> None:
    made = module(["zz", "aa", "port", "help"])
    assert made.index('"aa"') < made.index('"cpu_threads"') < made.index('"zz"')
    assert made.count('"port"') == 1
    assert '"help"' not in made


@pytest.mark.vllm
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_the_control_planes_list_is_that_of_the_installed_vllm() -> None:
    """If not: `python -m penstock.replica.vllm.exports.setting_names` writes it anew."""
    assert _COMMITTED.read_text() == module(flags_of_vllm())
