"""The table of docs/reference/admin_api.md, made from the API's own document. Writes it:

.venv/bin/python -m tests.control.admin.reference
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.control.admin.app_harness import running_admin

PAGE: Final = Path(__file__).parents[3] / "docs" / "reference" / "admin_api.md"
API: Final = "/admin/v1"
HEAD: Final = (
    "| request | role | `dry_run` | `If-Match` | `Idempotency-Key` | pages | what it does |\n"
    "|---|---|:-:|:-:|:-:|---|---|\n"
)
PAGING: Final = ("limit", "after", "before")


@dataclass(frozen=True, slots=True)
class Route:
    """One request that the API takes, as its document tells of it."""

    method: str
    path: str
    operation: Mapping[str, Any]
    is_list: bool
    makes_one: bool  # a POST whose path names nothing that is there

    @property
    def name(self) -> str:
        """As people write it."""
        return f"{self.method} {self.path}"

    @property
    def parameters(self) -> frozenset[str]:
        """Their names."""
        return frozenset(each["name"] for each in self.operation.get("parameters", ()))

    @property
    def role(self) -> str:
        """The lowest that may ask; empty where the document tells none."""
        asked = (each.values() for each in self.operation.get("security", ()))
        return next((role for schemes in asked for roles in schemes for role in roles), "")

    @property
    def missing(self) -> list[str]:
        """What a request of its kind should take, and does not."""
        needed = {"GET": {"limit", "after"} if self.is_list else set()}.get(self.method)
        if needed is None:
            needed = {"dry_run", "x-penstock-reason"}
            needed |= set() if self.makes_one else {"if-match"}
            needed |= {"idempotency-key"} if self.method == "POST" else set()
        return sorted(needed - self.parameters) + ([] if self.role else ["a role"])

    @property
    def line(self) -> str:
        """Its line of the table."""
        takes = ("yes" if n in self.parameters else "" for n in TAKEN)
        pages = ", ".join(f"`{name}`" for name in PAGING if name in self.parameters)
        said = " ".join(self.operation["description"].split()).partition(". ")[0].rstrip(".")
        said = said.replace("|", "\\|")
        return f"| `{self.name}` | {self.role} | {' | '.join(takes)} | {pages} | {said} |\n"


TAKEN: Final = ("dry_run", "if-match", "idempotency-key")


def routes_of(document: Mapping[str, Any]) -> Iterator[Route]:
    """Every request below /admin/v1, by path."""
    paths = {p.removeprefix(API): m for p, m in document["paths"].items() if p.startswith(API)}
    for path, methods in sorted(paths.items()):
        lists = _answers_a_list(methods.get("get"))
        for method, operation in methods.items():
            yield Route(
                method.upper(),
                path,
                operation,
                is_list=lists and method == "get",
                makes_one=method == "post" and (lists or "{" not in path),
            )


def page_of(document: Mapping[str, Any], page: str) -> str:
    """The page with the table as it is to be: all behind its head."""
    before, _, _ = page.partition(HEAD)
    return before + HEAD + "".join(route.line for route in routes_of(document))


async def document() -> Mapping[str, Any]:
    """The API's own."""
    async with running_admin() as admin:
        found: Mapping[str, Any] = (await admin.client.get("/openapi.json")).json()
        return found


def _answers_a_list(operation: Mapping[str, Any] | None) -> bool:
    content = (operation or {}).get("responses", {}).get("200", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema", {})
    return bool(schema.get("type") == "array")


if __name__ == "__main__":
    PAGE.write_text(page_of(asyncio.run(document()), PAGE.read_text()))
