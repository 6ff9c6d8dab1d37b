"""One node agent under one head for each test that asks for them."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.control.node_agent.harness import FakeHead, Node, of_this_test


@pytest.fixture
async def head() -> AsyncIterator[FakeHead]:
    head = FakeHead()
    await head.start()
    yield head
    await head.stop()


@pytest.fixture
async def node(tmp_path: Path, head: FakeHead) -> AsyncIterator[Node]:
    node = Node(tmp_path, head)
    node.start()
    yield node
    if node.process is not None and node.process.poll() is None:
        node.process.kill()
        node.process.wait()
    for pid in of_this_test(tmp_path):
        os.kill(pid, signal.SIGKILL)
