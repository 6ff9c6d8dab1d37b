"""What a request takes of memory, as the compiler has laid it out in the binary."""

from __future__ import annotations

import re
import subprocess

from tests.fakes.gateway_process import binary

RUN = "_ZN8penstock5proxy11RequestFlow3runERNS0_3AskERNS0_5ReplyE"
ASKED = re.compile(r"mov +\$0x([0-9a-f]+),%edi\n.*call +\w+ <_Znwm@plt>")
PAGE = 4096


def test_the_coroutine_of_a_request_takes_less_than_a_page() -> None:
    """From a page on the allocator goes its slow way, once for each request."""
    shown = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", f"--disassemble={RUN}", binary()],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    (size,) = ASKED.findall(shown)
    assert int(size, 16) < PAGE
