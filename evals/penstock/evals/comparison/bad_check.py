"""The one error of checks."""

from __future__ import annotations


class BadCheck(ValueError):
    """A check that cannot be carried out; the message says what it must be."""
