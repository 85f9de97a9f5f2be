"""Durations as Go and Kubernetes write them: `15m`, `1m30s`, `1.5h`, `250ms`."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART: Final = re.compile(rf"(\d+\.?\d*|\.\d+)({'|'.join(_SECONDS)})(?![a-zµμ])")


def parse_duration(text: str) -> timedelta:
    """Read a duration that is not negative.

    Raises:
        ValueError: it is not one.
    """
    if text == "0":
        return timedelta(0)
    seconds, position = 0.0, 0
    while part := _PART.match(text, position):
        seconds += float(part[1]) * _SECONDS[part[2]]
        position = part.end()
    if position == 0 or position != len(text):
        raise ValueError(f'"{text}" is not a duration: write it like "15m", "1m30s" or "500ms"')
    try:
        return timedelta(seconds=seconds)
    except OverflowError:
        raise ValueError(f'"{text}" is too long a duration') from None
