"""Personal data in texts: patterns, and the check digits of numbers that have some. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

EMAIL: Final = "e-mail address"
CARD: Final = "payment card"
IBAN: Final = "IBAN"
SSN: Final = "US social security number"
PHONE: Final = "phone number"

PERSONAL: Final[Mapping[str, re.Pattern[str]]] = {
    EMAIL: re.compile(r"\b[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})*\.[A-Za-z]{2,24}\b"),
    CARD: re.compile(r"(?<![\d-])(?:\d[ -]?){12,18}\d(?![\d-])"),
    IBAN: re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?\b"),
    SSN: re.compile(r"\b(?!000|666|9)\d{3}-(?!00)\d\d-(?!0000)\d{4}\b"),
    PHONE: re.compile(r"(?<!\w)\+\d{1,3}[ .-]?(?:\(?\d{1,4}\)?[ .-]?){2,5}\d{2,4}\b"),
}
"""Personal data, by what it is."""


def luhn(digits: Sequence[int]) -> bool:
    """Whether the last digit is the check digit that cards have."""
    doubled = [sum(divmod(2 * each, 10)) for each in digits[-2::-2]]
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0 and any(digits)


def mod97(plain: str) -> bool:
    """Whether letters and digits, without spaces, have the check digits of an IBAN."""
    moved = plain[4:] + plain[:4]
    return int("".join(str(int(each, 36)) for each in moved)) % 97 == 1
