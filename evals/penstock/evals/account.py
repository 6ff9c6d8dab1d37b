"""A tenant with a key, whose limits are counted and never reached: what a measured client has."""

from __future__ import annotations

import time

from penstock.evals.admin_api import AdminApi
from penstock.evals.endpoint import request
from penstock.evals.errors import EvalError

TENANT = "bench"
KEY_SECONDS = 10.0  # until every gateway knows a new key; the promise is one

# Each is looked at for every request, and no load of one machine comes near it.
GENEROUS = {
    "requests_per_minute": 2_000_000_000,
    "tokens_per_minute": 2_000_000_000,
    "max_streams": 1_000_000,
}


def open_account(admin: AdminApi, gateway_url: str, tenant: str = TENANT) -> str:
    """Makes a tenant and a key, and returns the key once the gateway takes it.

    From then on the gateway refuses requests without one. Raises `EvalError`.
    """
    admin.post("tenants", {"id": tenant, **GENEROUS})
    key: str = admin.post(f"tenants/{tenant}/keys", {"name": "bench"})["key"]
    deadline = time.monotonic() + KEY_SECONDS
    while request("GET", f"{gateway_url}/v1/models", key, timeout=5).status_code != 200:
        if time.monotonic() > deadline:
            raise EvalError(f"{gateway_url} does not take a new key within {KEY_SECONDS:g} s")
        time.sleep(0.02)
    return key
