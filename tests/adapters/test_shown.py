"""What strangers are shown, and what of this machine they are not."""

from __future__ import annotations

import pytest

from penstock.adapters.shown import without_places


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("the bytes in /srv/cache/ab12 have", "the bytes in …/ab12 have"),
        (
            "model /m: there is no directory /m; check",
            "model …/m: there is no directory …/m; check",
        ),
        ("'/srv/me/x y/z.json' (~/models/a/): no", "'…/x y/z.json' (…/a): no"),
        ("either/or, 3/4, https://host/path, org/model, a/b:c", ""),
        ("nothing of that kind", ""),
    ],
)
def test_of_a_path_its_last_part_is_left(text: str, told: str) -> None:
    assert without_places(text) == (told or text)
