"""Text from outside as people may be shown it."""

from __future__ import annotations

import pytest

from multikueue.core.model.outside_text import one_line, without_controls

HIDDEN = [
    "\x1b]0;title\x07",  # the terminal's title
    "\x1b[2J",  # clears the screen
    "\x9b2J",  # the same, as one character
    "\u202e",  # turns the direction
    "\u200b",
    "\u2066",
    "\x08",
    "\r",
    "\u2028",
]


@pytest.mark.parametrize("hidden", HIDDEN)
def test_what_a_terminal_acts_on_is_taken_out(hidden: str) -> None:
    for cleaned in (one_line(f"a{hidden}b"), without_controls(f"a{hidden}b")):
        assert not any(one in cleaned for one in "\x1b\x07\x9b\u202e\u200b\u2066\x08\r\u2028")
        assert cleaned[0] + cleaned[-1] == "ab"


def test_lines_and_tabs_stay_where_there_may_be_several() -> None:
    assert without_controls("a\n\tb é 日本") == "a\n\tb é 日本"
    assert one_line(" a\n\tb  é ") == "a b é"
