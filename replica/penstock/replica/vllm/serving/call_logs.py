"""What vLLM's loggers may say of a call: nothing that its client wrote.

vLLM logs what it refuses with the traceback, and so with words of the request: 3 KB for a wrong
grammar. A client's mistake is told to the client alone. What is nobody else's but ours stays whole.
"""

from __future__ import annotations

import logging
from typing import Final

from penstock.replica.vllm.serving.tap import CURRENT

_OF_PROMPTS: Final = "vllm.renderers."


class WithoutClientsWords(logging.Filter):
    """For handlers in the replica's process. Of records that are made for a call, those of a
    client's mistake go nowhere, nor do warnings that tell of no exception: vLLM has them of
    requests that it refuses. Errors that tell of none go without their values."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Called where the record is made, in the call's own context."""
        tap = CURRENT.get()
        if tap is None:
            # Prompts are made in a thread of vLLM's own, which knows no call.
            return not record.name.startswith(_OF_PROMPTS) or record.levelno >= logging.ERROR
        error = record.exc_info[1] if record.exc_info else None
        if error is None:
            record.args = ()
            return record.levelno >= logging.ERROR
        from penstock.replica.vllm.serving.handlers import failure

        return failure(error, tap).fault != "client"
