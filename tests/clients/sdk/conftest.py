"""Clients as their users set them up: a base URL, any key; no retries, so that failures show.

Tests take them as `Any`: their types change from version to version, and two are tried.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import openai
import pytest

from tests.clients.served import Served
from tests.fakes.lazily import anthropic


@pytest.fixture
def client(served: Served) -> Iterator[openai.OpenAI]:
    """The openai SDK."""
    with openai.OpenAI(
        base_url=served.base_url, api_key="none", max_retries=0, timeout=60
    ) as client:
        yield client


@pytest.fixture
async def async_client(served: Served) -> AsyncIterator[openai.AsyncOpenAI]:
    """The openai SDK for asyncio."""
    async with openai.AsyncOpenAI(
        base_url=served.base_url, api_key="none", max_retries=0, timeout=60
    ) as client:
        yield client


@pytest.fixture
def claude(served: Served) -> Iterator[Any]:
    """The Anthropic SDK."""
    with anthropic.Anthropic(
        base_url=served.root_url, api_key="none", max_retries=0, timeout=60
    ) as client:
        yield client
