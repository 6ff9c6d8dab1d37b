"""What strangers are shown, and what of this machine they are not."""

from __future__ import annotations

import pytest

from penstock.adapters.shown import public_name, without_places


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


@pytest.mark.parametrize(
    ("model", "name"),
    [("/srv/models/mini/", "mini"), ("/m", "m"), ("org/mini", "org/mini"), ("mini", "mini")],
)
def test_a_model_in_a_directory_is_called_as_that_is(model: str, name: str) -> None:
    assert public_name(model) == name
