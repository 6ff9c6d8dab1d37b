"""What the admin API takes and gives of aliases."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import ConfigDict, Field, StrictBool, StrictInt, model_validator

from penstock.adapters.alias import LARGEST_WEIGHT, MOST_SHARES, Alias, Move, Target
from penstock.control.admin.derived import Model, Shown
from penstock.control.admin.fields import Count, Text

if TYPE_CHECKING:
    # Of the head: who calls the API does not import it.
    from penstock.control.managers.adapters.aliases import AliasSpec

Weight = Annotated[StrictInt, Field(ge=0, le=LARGEST_WEIGHT)]


class AliasSpecModel(Model):
    """What an alias names: one version for everybody, or several with shares of the sessions."""

    model_config = ConfigDict(extra="forbid")

    target: Text | None = Field(None, examples=["pirate@2"])
    split: dict[Text, Weight] | None = Field(
        None,
        min_length=1,
        max_length=MOST_SHARES,
        description="by weight; a session stays with its version for as long as shares allow",
        examples=[{"pirate@1": 90, "pirate@2": 10}],
    )
    preload: Count | None = Field(
        None,
        description="replicas that load what it names before anybody asks; null: all; 0: none, it "
        "is loaded where it is asked for",
    )
    pinned: StrictBool = Field(
        False, description="it makes room for no other adapter where it is preloaded"
    )

    @model_validator(mode="after")
    def _one_of_two(self) -> AliasSpecModel:
        if (self.target is None) == (self.split is None):
            raise ValueError("say either target or split")
        return self

    def to_spec(self) -> AliasSpec:
        """What the manager is asked for."""
        weights = {self.target: 1} if self.target is not None else self.split or {}
        from penstock.control.managers.adapters.aliases import AliasSpec

        return AliasSpec(weights, self.preload, self.pinned)


class AliasModel(Shown):
    """An alias, and what it names now."""

    model: str = Field(description='what clients say as "model"')
    deployment: str
    alias: str
    target: str | None = Field(description="null where it is split")
    split: dict[str, int] | None = Field(description="weights in lowest terms; null: one version")
    preload: int | None
    pinned: bool
    moved_at: datetime
    moved_by: str
    moves: int = Field(description="that are remembered")

    @classmethod
    def of(cls, alias: Alias) -> AliasModel:
        """An alias as the API shows it."""
        last = alias.moves[-1]
        return cls.drawn(
            alias,
            model=alias.full_name,
            alias=alias.name,
            **_named(alias.target),
            moved_at=last.at,
            moved_by=last.by,
            moves=len(alias.moves),
        )


class MoveModel(Shown):
    """One move of an alias."""

    target: str | None
    split: dict[str, int] | None
    at: datetime
    by: str
    undoes: bool = Field(description="it took the move before it back")

    @classmethod
    def of(cls, move: Move) -> MoveModel:
        """A move as the API shows it."""
        return cls.drawn(move, **_named(move.target))


def _named(target: Target) -> dict[str, Any]:
    if len(target.shares) == 1:
        return {"target": str(target), "split": None}
    return {"target": None, "split": {str(ref): weight for ref, weight in target.shares}}
