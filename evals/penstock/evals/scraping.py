"""Metrics that are read again and again while something is measured, and what stands in them."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import httpx
from prometheus_client.parser import text_string_to_metric_families

from penstock.evals.endpoint import request
from penstock.evals.errors import EvalError

Labels = dict[str, str]


def page(url: str) -> str:
    """A page of metrics as Prometheus reads it. Raises `EvalError`."""
    try:
        return request("GET", url, timeout=10).raise_for_status().text
    except httpx.HTTPError as error:
        raise EvalError(f"{url} cannot be read: {error!r}") from error


@contextlib.contextmanager
def scraped(url: str, every: float = 1.0) -> Iterator[None]:
    """Reads the page at once and every so many seconds while the block lasts; no URL: never.

    Raises `EvalError` at the end where a page could not be read: the figures would be of less.
    """
    over = threading.Event()
    problems: list[EvalError] = []

    def read() -> None:
        while True:
            try:
                page(url)
            except EvalError as error:
                problems.append(error)
            if over.wait(every):
                return

    reader = threading.Thread(target=read, name="scrapes")
    if url:
        reader.start()
    try:
        yield
    finally:
        over.set()
        if url:
            reader.join()
    if problems:
        raise problems[0]


def series(text: str, name: str) -> list[tuple[Labels, float]]:
    """All series of a metric on a page, with their labels."""
    families = text_string_to_metric_families(text)
    told = (each for family in families for each in family.samples if each.name == name)
    return [(each.labels, each.value) for each in told]


def total(text: str, name: str) -> float:
    """The sum of all series of a metric; 0 where there is none."""
    return sum(value for _, value in series(text, name))
