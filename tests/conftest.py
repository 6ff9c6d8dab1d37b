"""What holds for every test of the project."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# A busy machine is no failure: how long one example takes is not what property tests are about.
settings.register_profile("penstock", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("penstock")
