"""Writes the names of vLLM's engine settings down for the control plane, which never imports vLLM.

`python -m penstock.replica.vllm.exports.setting_names` prints the Python module that is committed
as `control/penstock/control/state/rollout/vllm_settings.py`; a test holds the two together.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Final

from penstock.replica.settings import PATIENCE
from penstock.replica.vllm.start import checks
from penstock.replica.vllm.start.arguments import OWN_KEYS, OWNED

_HERE: Final = "penstock.replica.vllm.exports.setting_names"


def module(flags: Iterable[str]) -> str:
    """The module for vLLM's flags, by the names that the replica takes them by."""
    known = sorted({*flags, *OWN_KEYS, *PATIENCE} - OWNED - {"help"})
    return "\n".join(
        (
            f'"""Engine settings of vLLM {checks.TESTED_VLLM}x, and the replica\'s own.',
            "",
            f"Written by `python -m {_HERE}`; not changed by hand.",
            '"""',
            "",
            "KNOWN = (",
            *(f'    "{name}",' for name in known),
            ")",
            "",
            "# The replica sets these itself.",
            "OWNED = (",
            *(f'    "{name}",' for name in sorted(OWNED)),
            ")",
            "",
        )
    )


def flags_of_vllm() -> list[str]:
    """The flags that the installed vLLM has."""
    from vllm.entrypoints.launchers.cli_args import make_arg_parser
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    from penstock.replica.vllm.start.launch import options_of

    return list(options_of(make_arg_parser(FlexibleArgumentParser(prog="vllm"))))


if __name__ == "__main__":
    sys.stdout.write(module(flags_of_vllm()))
