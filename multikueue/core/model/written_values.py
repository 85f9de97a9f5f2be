"""What people write in one word: durations as Go reads them, label selectors as kubectl does."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION_PART: Final = re.compile(rf"([0-9]+\.?[0-9]*|\.[0-9]+)({'|'.join(_SECONDS)})(?![a-zµμ])")
_LONGEST: Final = 2**63 // 10**9
"""Seconds: Go counts nanoseconds. So a time from now on is one that a clock can show."""
LONGEST_SELECTOR: Final = 1_000
"""Characters of a selector."""
_NAME: Final = r"[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
LABEL_VALUE: Final = re.compile(_NAME)
"""A text that Kubernetes takes as a label's value, as it takes an empty one."""
_LABEL: Final = r"[a-z0-9](?:[-a-z0-9]{0,251}[a-z0-9])?"
_KEY: Final = rf"(?:(?=[^/]{{1,253}}/){_LABEL}(?:\.{_LABEL})*/)?{_NAME}"
LABEL_KEY: Final = re.compile(_KEY)
"""A text that Kubernetes takes as a label's key."""
_SPACE: Final = r"[ \t\r\n]*"
_VALUE: Final = rf"{_SPACE}(?:{_NAME})?{_SPACE}"
_SET: Final = rf"[ \t\r\n]+(?:not)?in{_SPACE}\({_VALUE}(?:,{_VALUE})*\)"
_COMPARED: Final = rf"{_SPACE}(?:(?:==?|!=){_VALUE}|[<>]{_SPACE}[0-9]{{1,18}})"
_REQUIREMENT: Final = rf"{_SPACE}(?:!{_SPACE}{_KEY}|{_KEY}(?:{_COMPARED}|{_SET})?){_SPACE}"
_SELECTOR: Final = re.compile(rf"{_REQUIREMENT}(?:,{_REQUIREMENT})*")


def parse_duration(text: str) -> timedelta:
    """Read a duration as Go and Kubernetes write it, `15m`, `1m30s`, `1.5h`, `250ms`; none is negative.

    Raises:
        ValueError: it is not one, or longer than one of Go's.
    """
    unsigned = text.removeprefix("+")
    if unsigned == "0":
        return timedelta(0)
    seconds, position = 0.0, 0
    while part := _DURATION_PART.match(unsigned, position):
        seconds += float(part[1]) * _SECONDS[part[2]]
        position = part.end()
    if position == 0 or position != len(unsigned):
        raise ValueError(f'"{text}" is not a duration: write it like "15m", "1m30s" or "500ms"')
    if seconds > _LONGEST:
        raise ValueError(f'"{text}" is too long a duration')
    return timedelta(seconds=seconds)


def is_label_selector(text: str) -> bool:
    """Whether an API server takes a text as a label selector that selects by something."""
    return len(text) <= LONGEST_SELECTOR and _SELECTOR.fullmatch(text) is not None
