"""A pytest plugin: `penstock.control` comes from the folder in CONTROL_OVERLAY.

An editable install knows where each module is, whatever the path says; so this asks first.
Histories are the same in each run, and one that fails is not made shorter.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

from hypothesis import HealthCheck, Phase, settings

FOLDER = os.environ["CONTROL_OVERLAY"]


class OverlayFinder:
    """Finds the package and what is in it."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name == "penstock.control":
            return PathFinder.find_spec(name, [FOLDER], target)
        if name.startswith("penstock.control."):
            return PathFinder.find_spec(name, path, target)
        return None


sys.meta_path.insert(0, OverlayFinder)
settings.register_profile(
    "mutations",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
)
