"""The list for people who read: `python -m tests.replica.vllm.surface_table` prints what is
committed as `docs/reference/vllm_touch_points.md`; a test holds the two together.
"""

from __future__ import annotations

import sys

from penstock.replica.vllm.surface import TOUCH_POINTS


def table() -> str:
    """The list for people who read."""
    rows = [
        f"| {'<br>'.join(f'`{name}`' for name in touch.names)} "
        f"| {', '.join(f'`{user}`' for user in touch.users)} | {touch.why} | {touch.until} |"
        for touch in TOUCH_POINTS
    ]
    head = (
        "# What the replica reaches for inside vLLM",
        "",
        "Made by `python -m tests.replica.vllm.surface_table`; not changed by hand. A replica",
        "checks it as it starts; files are those of `replica/penstock/replica/vllm/`. In brackets:",
        "parameters (those before `*` in this order), attributes, keys.",
        "",
        "| in vLLM, or in what it is built on | needed by | why | not needed any more when |",
        "| --- | --- | --- | --- |",
    )
    return "\n".join((*head, *rows, ""))


if __name__ == "__main__":
    sys.stdout.write(table())
