"""What the admin API takes of canaries."""

from __future__ import annotations

from penstock.control.admin.derived import Derived, derived
from penstock.control.declared.codec import Codec
from penstock.control.state.canary.spec import (
    DEFAULT_STEPS,
    CanarySpec,
    ErrorsGuard,
    FinishGuard,
    Guards,
    Step,
    TimeGuard,
)

SPECS = Codec(CanarySpec)


@derived(Step)
class CanaryStepModel(Derived):
    """One share, and what has to be seen of it before the next."""


@derived(ErrorsGuard)
class ErrorsGuardModel(Derived):
    """Sessions of which any request broke."""


@derived(FinishGuard)
class FinishGuardModel(Derived):
    """Sessions whose first whole answer was cut, filtered, or empty."""


@derived(TimeGuard)
class TimeGuardModel(Derived):
    """Sessions slower than half, and than nine tenths, of the stable arm's."""


_STEPS = [CanaryStepModel.showing(each) for each in DEFAULT_STEPS]
_TIME = (TimeGuardModel, TimeGuardModel())


@derived(
    Guards,
    errors=(ErrorsGuardModel, ErrorsGuardModel()),
    finish=(FinishGuardModel, FinishGuardModel()),
    ttft=_TIME,
    between_tokens=_TIME,
    total=_TIME,
)
class GuardsModel(Derived):
    """What the candidate is held to, always beside the stable arm at the same time."""


@derived(
    CanarySpec,
    steps=(
        list[CanaryStepModel],
        {"default": _STEPS},
    ),
    guards=(GuardsModel, GuardsModel()),
)
class CanarySpecModel(Derived):
    """Whose clients are shared, with which candidate, in which steps, held to what."""

    def to_spec(self) -> CanarySpec:
        """The spec that this asks for; raises InvalidInput."""
        return SPECS.value(self.model_dump())
