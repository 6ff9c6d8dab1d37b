"""The frame of a page that needs nothing else and runs nothing. Pure."""

from __future__ import annotations

from html import escape
from typing import Final

from penstock.evals.comparison.page_style import STYLE

POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def whole_page(title: str, body: str) -> str:
    """The page round a body of HTML."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="content-security-policy" content="{escape(POLICY)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""
