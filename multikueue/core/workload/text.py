"""Texts for people made of texts of others: cut, on one line, without addresses."""

from __future__ import annotations

import functools
import re
from typing import Final

from multikueue.core.model.outside_text import one_line

BEFORE_PARTS: Final = " — "
"""Between the head of a check's message and its parts."""
BETWEEN_PARTS: Final = " · "
MAX_PART: Final = 256
"""The most characters that one worker's words may have."""
_LOOKED_AT: Final = 4 * MAX_PART

_HIDDEN: Final = "[address]"
_ADDRESSES: Final = re.compile(
    r"\bhttps?://[^\s\"'<>]+"
    r"|\[[0-9A-Fa-f:]*:[0-9A-Fa-f:.]+\](?::\d+)?"
    r"|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?\b"
    r"|\b(?:[A-Za-z0-9-]+\.)+[A-Za-z][A-Za-z0-9-]*:\d{2,5}\b"
)
_CAPACITY: Final = re.compile(
    r", previously considered podsets requests \(0\) \+ current podset request \((?P<wanted>[^()]+)\)"
    r" > maximum capacity \((?P<most>[^()]+)\)"
)
_POD_SET: Final = re.compile(r"couldn't assign flavors to pod set \S+: (?!.*couldn't assign flavors)")


def plain(text: str) -> str:
    """A text of somebody else as a part of a message: one line, at most `MAX_PART` characters, without addresses."""
    return _plain(_begin(text))


@functools.lru_cache(maxsize=1024)
def _plain(text: str) -> str:
    hidden = without_addresses(one_line(text))
    # What separates the parts of a message may not stand in one.
    whole = hidden.replace(BEFORE_PARTS.strip(), "-").replace(BETWEEN_PARTS.strip(), "*")
    return whole if len(whole) <= MAX_PART else whole[: MAX_PART - 4] + " ..."


def without_addresses(text: str) -> str:
    """A text that a tenant may read: where workers are is nobody's business but the operator's."""
    return _ADDRESSES.sub(_HIDDEN, text)


def condensed(text: str) -> str:
    """What a worker's Kueue says about quota, in its words and without those that do not help."""
    return _condensed(_begin(text))


def _begin(text: str) -> str:
    """As much of a text as is looked at, in whole words: whoever writes it must not cost us time or memory."""
    return text if len(text) <= _LOOKED_AT else text[:_LOOKED_AT].rpartition(" ")[0]


@functools.lru_cache(maxsize=1024)
def _condensed(text: str) -> str:
    return _POD_SET.sub("", _CAPACITY.sub(r" (\g<wanted> > \g<most>)", text))
