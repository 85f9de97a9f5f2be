"""Text from outside as people may be shown it: no control characters, no marks that turn its direction."""

from __future__ import annotations

import functools
import re
import unicodedata
from typing import Final

_HIDDEN: Final = "[address]"
_ADDRESSES: Final = re.compile(
    r"\bhttps?://[^\s\"'<>]+"
    r"|\[[0-9A-Fa-f:]{0,39}:[0-9A-Fa-f:.]{1,45}\](?::\d+)?"
    r"|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?\b"
    r"|(?<![A-Za-z0-9.-])[A-Za-z0-9.-]*\.[A-Za-z][A-Za-z0-9-]*:\d{2,5}\b"
)
"""Each is tried once for a run of its characters, so that a text of a megabyte costs no more than it is long."""

BEFORE_PARTS: Final = " — "
"""Between the head of a check's message and its parts."""
BETWEEN_PARTS: Final = " · "
MAX_PART: Final = 256
"""The most characters that one worker's words may have."""
_LOOKED_AT: Final = 4 * MAX_PART


def one_line(text: str) -> str:
    """A text on one line: what is not to be seen (control and format characters, spaces) becomes single spaces.

    Without it a worker's words could move the cursor of a terminal, set its title, hide what follows, or look like
    lines of ours.
    """
    if text.isascii() and text.isprintable() and "  " not in text:
        return text.strip()
    return " ".join(
        "".join(" " if unicodedata.category(character)[0] in "CZ" else character for character in text).split()
    )


def without_controls(text: str) -> str:
    """A text of several lines with nothing but these and tabs: any other character that is not seen becomes `�`."""
    return "".join("�" if is_hidden(character) else character for character in text) if has_hidden(text) else text


def has_hidden(text: str) -> bool:
    """Whether a text has characters that a terminal would obey and not show."""
    return not (text.isascii() and text.isprintable()) and any(map(is_hidden, text))


def is_hidden(character: str) -> bool:
    """Whether a character is not to be seen, and neither a line's end nor a tab."""
    return character not in "\n\t" and unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def without_addresses(text: str) -> str:
    """A text that a tenant may read: where workers are is nobody's business but the operator's."""
    return _ADDRESSES.sub(_HIDDEN, text)


def plain(text: str) -> str:
    """A text of somebody else as a part of a message: one line, at most `MAX_PART` characters, without addresses."""
    return _plain(begin_of(text))


@functools.lru_cache(maxsize=1024)
def _plain(text: str) -> str:
    hidden = without_addresses(one_line(text))
    # What separates the parts of a message may not stand in one.
    whole = hidden.replace(BEFORE_PARTS.strip(), "-").replace(BETWEEN_PARTS.strip(), "*")
    return whole if len(whole) <= MAX_PART else whole[: MAX_PART - 4] + " ..."


def begin_of(text: str) -> str:
    """As much of a text as is looked at, in whole words: whoever writes it must not cost us time or memory."""
    return text if len(text) <= _LOOKED_AT else text[:_LOOKED_AT].rpartition(" ")[0]
