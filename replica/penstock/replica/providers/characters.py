"""Texts that are made of whole characters. Pure."""

from __future__ import annotations


def whole_characters(text: str) -> str:
    """The text, with a replacement for each half of a surrogate pair, which is no UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
