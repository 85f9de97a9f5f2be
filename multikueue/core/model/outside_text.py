"""Text from outside as people may be shown it: no control characters, no marks that turn its direction."""

from __future__ import annotations

import unicodedata


def one_line(text: str) -> str:
    """A text on one line: what is not to be seen (control and format characters, spaces) becomes single spaces.

    Without it a worker's words could move the cursor of a terminal, set its title, hide what follows, or look like
    lines of ours.
    """
    if text.isascii() and text.isprintable() and "  " not in text:
        return text.strip()
    return " ".join("".join(" " if unicodedata.category(one)[0] in "CZ" else one for one in text).split())


def without_controls(text: str) -> str:
    """A text of several lines with nothing but these and tabs: any other character that is not seen becomes `�`."""
    if text.isascii() and text.isprintable():
        return text
    return "".join("�" if _is_hidden(one) else one for one in text)


def _is_hidden(one: str) -> bool:
    return one not in "\n\t" and unicodedata.category(one) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
