"""Errors of the control plane, told apart by their codes."""

from __future__ import annotations

import pytest

from penstock.control.errors import Code, PenstockError


def raises_code(code: Code, match: str | None = None) -> pytest.RaisesExc[PenstockError]:
    """`pytest.raises` for an error of this code, whatever its class."""
    return pytest.raises(PenstockError, match=match, check=lambda error: error.code is code)
