"""Targets of Prometheus as the admin API shows them."""

from __future__ import annotations

from pydantic import Field

from penstock.control.admin.derived import Model


class ScrapeTargetModel(Model):
    """Targets with the same labels, as Prometheus's `http_sd_configs` take them."""

    targets: list[str] = Field(description="host:port")
    labels: dict[str, str] = Field(description="of all that they tell")
