"""What the by-hand test of the histories takes out is still there to be taken out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.control.mutations.mends import MENDS, Mend
from tests.control.mutations.run import copy_without


@pytest.mark.parametrize("mend", MENDS, ids=lambda mend: mend.says)
def test_each_promise_can_be_taken_out_of_a_copy_that_still_compiles(
    mend: Mend, tmp_path: Path
) -> None:
    copy_without(mend, tmp_path)
    for edit in mend.without:
        text = (tmp_path / "control" / edit.file).read_text()
        assert edit.old not in text or edit.old in edit.new
        compile(text, edit.file, "exec")
