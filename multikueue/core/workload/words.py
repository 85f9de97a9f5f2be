"""Texts for people made of texts of others: cut, on one line, without addresses; and the message that has both.

The message of our check has a head, which is the dispatcher's or ours, and behind ` — ` what the workers say, joined by
` · `. A dispatcher reads the head back as it wrote it, whatever stands behind it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import Final

from multikueue.core.model.conditions import parse_timestamp
from multikueue.core.model.outside_text import one_line

BEFORE_REASONS: Final = " — "
"""Between the head of a message and what the workers say."""
BETWEEN_REASONS: Final = " · "
MAX_PART: Final = 256
"""The most characters that one worker's words may have."""
_LOOKED_AT: Final = 4 * MAX_PART
SAME_TIME: Final = 5.0
"""Seconds by which two times in texts may differ that mean the same: they are computed anew with each look."""

_HIDDEN: Final = "[address]"
_ADDRESSES: Final = re.compile(
    r"\bhttps?://[^\s\"'<>]+"
    r"|\[[0-9A-Fa-f:]*:[0-9A-Fa-f:.]+\](?::\d+)?"
    r"|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?\b"
    r"|\b(?:[A-Za-z0-9-]+\.)+[A-Za-z][A-Za-z0-9-]*:\d{2,5}\b"
)
_TIME: Final = re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
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
    whole = hidden.replace(BEFORE_REASONS.strip(), "-").replace(BETWEEN_REASONS.strip(), "*")
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


def with_reasons(head: str, parts: Iterable[str]) -> str:
    """The message of these parts behind a head; `head_of` reads the head back."""
    tail = BETWEEN_REASONS.join(part for part in parts if part)
    return f"{head}{BEFORE_REASONS}{tail}" if tail or BEFORE_REASONS in head else head


def head_of(message: str) -> str:
    """The message without what the workers say."""
    head, separator, _ = message.rpartition(BEFORE_REASONS)
    return head if separator else message


def tells_the_same(one: str, other: str) -> bool:
    """Whether two messages differ in nothing but times that are a few seconds apart."""
    if one == other:
        return True
    times = zip(_TIME.findall(one), _TIME.findall(other), strict=False)
    return _TIME.sub("", one) == _TIME.sub("", other) and all(_are_near(*pair) for pair in times)


def _are_near(one: str, other: str) -> bool:
    first, second = parse_timestamp(one), parse_timestamp(other)
    return first is not None and second is not None and abs((first - second).total_seconds()) <= SAME_TIME
