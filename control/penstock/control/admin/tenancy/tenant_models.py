"""What the admin API takes and gives of tenants, keys and usage."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AwareDatetime, ConfigDict, Field, StrictInt

from penstock.control.admin.derived import Derived, Model, Shown, derived
from penstock.control.admin.fields import Text
from penstock.control.declared.codec import Codec
from penstock.control.state.tenancy.tenancy import Tenancy
from penstock.control.state.tenancy.tenants import (
    Access,
    ApiKey,
    Tenant,
    TenantSpec,
)
from penstock.control.state.tenancy.usage import UsageRow, total

if TYPE_CHECKING:
    # Of the head: who calls the API does not import it.
    from penstock.control.managers.tenancy.tenants import MadeKey

FIRST_KEY = (
    "this is the first key: from now on every gateway answers 401 to requests without one, those"
    " that it answered so far on the loopback and by --open included. `penstock keys anonymous"
    " allow` (PUT /admin/v1/access, role admin) has them answered again"
)
SPECS = Codec(TenantSpec)
Anonymous = Literal["allowed", "refused"]


@derived(TenantSpec)
class TenantSpecModel(Derived):
    """What a tenant is held to, at all gateways together."""

    def to_spec(self) -> TenantSpec:
        """The spec that this asks for; raises InvalidInput."""
        return SPECS.value(self.model_dump())


class NewTenant(TenantSpecModel):
    """A tenant to create."""

    id: Text = Field(examples=["acme"])


class TenantModel(TenantSpecModel):
    """A tenant: what it is held to, and how it stands."""

    id: str
    uid: str = Field(description="tells it from deleted namesakes")
    generation: int = Field(description="for If-Match; grows with every change")
    keys: int = Field(description="that it has, expired ones included")
    quota_used_up: bool = Field(description="it has had its tokens or dollars of the day")
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, tenancy: Tenancy, tenant: Tenant, keys: int) -> TenantModel:
        """A tenant as the API shows it."""
        used_up = tenant.id in tenancy.standing.used_up | tenancy.standing.out_of_money
        return cls.showing(tenant, keys=keys, quota_used_up=used_up)


@derived(ApiKey, only=("tokens_per_day", "usd_per_day"))
class KeyLimits(Derived):
    """What a key is held to, besides what its tenant is."""


class NewKey(KeyLimits):
    """A key to create."""

    name: Text = Field("", max_length=100, description="for people", examples=["ci"])
    expires_at: AwareDatetime | None = Field(None, description="null: never")
    expires_in_days: Annotated[StrictInt, Field(ge=1, le=36_500)] | None = Field(
        None, description="in place of expires_at"
    )


class KeyModel(Shown):
    """A key as it is known: its SHA-256 alone is stored."""

    id: str
    tenant: str
    name: str
    created_at: datetime
    expires_at: datetime | None = Field(description="null: never")
    tokens_per_day: int = Field(0, description="of this key, besides its tenant's; 0: no limit")
    usd_per_day: float = Field(0.0, description="likewise, US dollars; 0: no limit")


class CreatedKeyModel(KeyModel):
    """A key that was made just now."""

    key: str = Field(description="what clients send: shown once, keep it")
    warning: str = Field("", description="what else it changed, for whom; empty: nothing")

    @classmethod
    def made(cls, made: MadeKey) -> CreatedKeyModel:
        """A key as the API shows it, this once."""
        warning = FIRST_KEY if made.refuses_others else ""
        return cls.drawn(made.key, key=made.secret, warning=warning)


class AccessModel(Model):
    """Whether requests without a key are answered."""

    model_config = ConfigDict(extra="forbid")

    anonymous: Anonymous = Field(
        description="refused from the first key on, until somebody allows it; allowed: each "
        "gateway goes by its own flags"
    )

    @classmethod
    def of(cls, access: Access) -> AccessModel:
        """As the API shows it."""
        return cls(anonymous="refused" if access.keys_required else "allowed")


class CountsModel(Shown):
    """What was counted."""

    requests: int = Field(description="that went to a replica")
    rejected: int = Field(description="by a limit of the tenant")
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = Field(description="of the prompt tokens")
    cost_nanousd: int = Field(0, description="billionths of a US dollar, where it has prices")


class UsageRowModel(CountsModel):
    """What one key cost on one model on one day."""

    day: date = Field(description="of UTC")
    tenant: str = Field(description="empty: requests without a key")
    key_id: str
    model: str = Field(description="the deployment")
    adapter: str = Field(description="name@version; empty: the base model")

    @classmethod
    def of(cls, row: UsageRow) -> UsageRowModel:
        """A row as the API shows it."""
        return cls.drawn(row, row.of, row.counts, model=row.of.deployment)


class UsageModel(Model):
    """What was used in some days, by day, tenant, key, model and adapter."""

    model_config = ConfigDict(serialize_by_alias=True)

    first: date = Field(serialization_alias="from", validation_alias="from")
    last: date = Field(serialization_alias="to", validation_alias="to")
    rows: list[UsageRowModel]
    total: CountsModel

    @classmethod
    def of(cls, first: date, last: date, rows: Iterable[UsageRow]) -> UsageModel:
        """Rows as the API shows them."""
        found = list(rows)
        return cls.model_validate(
            {
                "from": first,
                "to": last,
                "rows": [UsageRowModel.of(row) for row in found],
                "total": CountsModel.drawn(total(row.counts for row in found)),
            }
        )
