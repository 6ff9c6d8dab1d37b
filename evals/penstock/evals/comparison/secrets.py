"""What requests must not be kept with, by rule: where it stands in a text. Pure.

Rules rather take out too much: a number that passes for a card is one. None of them takes longer
than in proportion to the text.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from penstock.evals.comparison.personal import (
    CARD,
    EMAIL,
    IBAN,
    PERSONAL,
    PHONE,
    SSN,
    mod97,
)

Span = tuple[int, int]
Finder = Callable[[str], Iterable[Span]]

_BEARER: Final = re.compile(
    r"(?i)(?<![\w-])bearer[ \t]{1,8}(?=[^\s]{0,200}?[\d._~+/=-])[\w.~+/=-]{8,}"
)
_KEY: Final = re.compile(
    r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]{0,30}PRIVATE KEY-----|\Z)"
    r"|(?<![\w-])(?:"
    r"(?:sk|pk|rk|psk|pst)[-_][\w-]{12,}"  # OpenAI, Anthropic, Stripe, Penstock
    r"|(?:AKIA|ASIA)[0-9A-Z]{16}(?!\w)"
    r"|gh[a-z]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|hf_[A-Za-z0-9]{20,}"
    r"|xox[a-z]-[\w-]{10,}|AIza[\w-]{35}"
    r"|eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?"  # JSON web tokens
    r")"
)
_PHONES: Final = (
    PERSONAL[PHONE],
    re.compile(r"(?<![\w.+-])\(?0\d{1,4}\)?[ /.-]?\d{2,4}(?:[ .-]?\d{2,4}){1,3}(?![\w-])"),
    re.compile(r"(?<![\w.+-])(?:1[ .-])?\(?\d{3}\)?[ .-]\d{3}[ .-]\d{4}(?![\w-])"),
)
_DIGITS: Final = re.compile(r"\d(?:[ .-]?\d){12,}")
_GROUP: Final = re.compile(r"\d+")
_IBAN_HEAD: Final = re.compile(r"(?i)(?<![A-Z0-9])[A-Z]{2}[0-9]{2}(?= ?[A-Z0-9])", re.ASCII)
_IBAN_BODY: Final = re.compile(r"(?i)[A-Z]{2}[0-9]{2}(?:[ -]?[A-Z0-9]){11,30}", re.ASCII)
_OCTET: Final = r"(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])"
_IPV4: Final = re.compile(rf"(?<![\w.])(?:{_OCTET}\.){{3}}{_OCTET}(?!\.?\w)")
_IPV6: Final = re.compile(
    r"(?<![\w:.])(?=[0-9A-Fa-f]{0,4}:[0-9A-Fa-f]{0,4}:)[0-9A-Fa-f:]{3,39}(?:\.[0-9]{1,3}){0,3}(?![\w:])"
)
SHORTEST_CARD: Final = 13
LONGEST_CARD: Final = 19
_CARDS_BEGIN: Final = "23456"
_IBANS: Final = (
    "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 "
    "DK18 DO28 EE20 EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 "
    "IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 "
    "MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 "
    "SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30 "
)
_IBAN_LENGTHS: Final = {each[:2]: int(each[2:]) for each in _IBANS.split()}


def _found(*patterns: re.Pattern[str]) -> Finder:
    def spans(text: str) -> Iterator[Span]:
        every = [found.span() for pattern in patterns for found in pattern.finditer(text)]
        return iter(sorted(every))

    return spans


def _cards(text: str) -> Iterator[Span]:
    for run in _DIGITS.finditer(text):
        groups = [group.span() for group in _GROUP.finditer(text, *run.span())]
        end = 0
        for first, (start, _) in enumerate(groups):
            if start >= end and (stop := _card(text, groups[first : first + LONGEST_CARD])):
                yield start, stop
                end = stop


def _card(text: str, groups: list[Span]) -> int:
    """Where the longest card ends that begins with these groups of digits; 0: none does."""
    if text[groups[0][0]] not in _CARDS_BEGIN:
        return 0
    sums = [0, 0]  # of Luhn's digits, where the next digit but one is doubled, and where the next
    length = found = 0
    for start, stop in groups:
        for each in text[start:stop]:
            digit = int(each)
            doubled = sum(divmod(2 * digit, 10))
            sums = [sums[1] + digit, sums[0] + doubled]
            length += 1
            if length > LONGEST_CARD:
                return found
        if length >= SHORTEST_CARD and sums[0] % 10 == 0:
            found = stop
    return found


def _ibans(text: str) -> Iterator[Span]:
    end = 0
    for head in _IBAN_HEAD.finditer(text):
        body = _IBAN_BODY.match(text, head.start())
        if head.start() >= end and body and (stop := _iban(body.group())):
            end = head.start() + stop
            yield head.start(), end


def _iban(told: str) -> int:
    """How long the IBAN is that the text begins with; 0: it begins with none."""
    letters = [at for at, each in enumerate(told) if each.isalnum()]
    length = _IBAN_LENGTHS.get(told[:2].upper(), 0)
    if not length or len(letters) < length:
        return 0
    plain = "".join(told[at] for at in letters[:length])
    return letters[length - 1] + 1 if mod97(plain) else 0


def _addresses(text: str) -> Iterator[Span]:
    every = [found.span() for found in _IPV4.finditer(text)]
    for found in _IPV6.finditer(text):
        try:
            ipaddress.IPv6Address(found.group())
        except ValueError:
            continue
        every.append(found.span())
    return iter(sorted(every))


SHIPPED: Final[Mapping[str, Finder]] = {
    "API key": _found(_KEY),
    "bearer token": _found(_BEARER),
    EMAIL: _found(PERSONAL[EMAIL]),
    IBAN: _ibans,
    CARD: _cards,
    SSN: _found(PERSONAL[SSN]),
    PHONE: _found(*_PHONES),
    "IP address": _addresses,
}
"""The rules that ship, in the order in which they look."""
