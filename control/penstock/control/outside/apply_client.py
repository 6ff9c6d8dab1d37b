"""Documents that say what there is to be, over the admin API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from penstock.control.admin.apply.models import DocumentsModel, PlanModel
from penstock.control.outside.admin_transport import AdminTransport
from penstock.control.outside.rollout_client import reason_header

# The head may fetch adapters first.
APPLY_TIMEOUT = timedelta(minutes=30)
EXPORT_TIMEOUT = timedelta(minutes=1)


class ApplyClient(AdminTransport):
    """All that is to be, at once."""

    async def apply(
        self,
        documents: Sequence[Mapping[str, Any]],
        *,
        set_name: str,
        prune: bool = False,
        force: bool = False,
        dry_run: bool = False,
        reason: str = "",
        abort_canary: bool = False,
        hand_over: bool = False,
    ) -> PlanModel:
        """Makes what they say, or says what that would change. Raises `BadDocuments`."""
        return await self.post(
            PlanModel,
            "/apply",
            json={"documents": list(documents)},
            params={
                "set_name": set_name,
                "prune": prune,
                "force": force,
                "dry_run": dry_run,
                "abort_canary": abort_canary,
                "hand_over": hand_over,
            },
            headers=reason_header(reason),
            timeout=APPLY_TIMEOUT.total_seconds(),
        )

    async def export(self) -> list[dict[str, Any]]:
        """What there is, as documents."""
        limit = EXPORT_TIMEOUT.total_seconds()
        return (await self.get(DocumentsModel, "/export", timeout=limit)).documents
