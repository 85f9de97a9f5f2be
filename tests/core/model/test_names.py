"""What Kubernetes takes as a name: what is read as one can be sent as one."""

from __future__ import annotations

import pytest

from multikueue.core.model.names import OBJECT_NAME, SHORT_NAME


@pytest.mark.parametrize(
    ("name", "is_short", "is_object"),
    [
        ("a", True, True),
        ("team-a1", True, True),
        ("x" * 63, True, True),
        ("x" * 64, False, True),
        ("a.b-c.d", False, True),
        (f"{'x' * 251}.y", False, True),
        (f"{'x' * 252}.y", False, False),
        *(
            (text, False, False)
            for text in ("", "-a", "a-", "A", "a..b", "a.-b", "a-.b", ".a", "a.", "a/b", "a\n", "ä")
        ),
    ],
)
def test_names(name: str, is_short: bool, is_object: bool) -> None:
    assert (SHORT_NAME.fullmatch(name) is not None, OBJECT_NAME.fullmatch(name) is not None) == (is_short, is_object)
