"""What can be told of JSON that the parser refuses: it nests too deep, or has a number or bytes that are none.

API servers accept 10,000 levels in fields that take anything, the parser 1,024. Whoever may create objects there may
create one. Its name must stay known, and the other objects readable.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from multikueue.core.model.names import Json

LEVELS: Final = 64
"""Deeper values are left out. Metadata that anybody reads has at most ten levels."""
MAX_RUNS: Final = 1 << 18
"""How many runs of brackets are looked at, 0.2 s: the largest object that etcd takes has fewer in its metadata."""

_RUN: Final = re.compile(
    rb'([^"\[\]{}]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"\[\]{}]*+)*+)([\[{]++|[\]}]++)',
    re.DOTALL,
)
"""Texts and what is between them, and then brackets. Possessive, so that the time is linear whatever it reads."""
_INNER: Final = 2
"""Levels around the metadata in an event of a watch."""


def mended(raw: bytes) -> Json | None:
    """A JSON object without what nests too deep; None if it is none, or too much to look at."""
    return _parsed(_cut(raw, stop=False))


def mended_event(line: bytes) -> Json | None:
    """An event of a watch: of its object only what comes before the end of its metadata."""
    return _parsed(_cut(line, stop=True))


def _cut(raw: bytes, *, stop: bool) -> bytes:
    """The JSON with null for what nests too deep; with `stop` up to the end of an event's metadata. Empty: too much."""
    kept: list[bytes] = []
    depth, at, begin, in_metadata = 0, 0, 0, False
    for _ in range(MAX_RUNS):
        run = _RUN.match(raw, at)
        if run is None:
            return b"".join((*kept, raw[begin:]))
        first, at = run.span(2)
        before, brackets = depth, at - first
        if raw[first] in b"[{":
            depth += brackets
            in_metadata = in_metadata or (before == _INNER and run[1].rstrip().endswith(b'"metadata":'))
            if before <= LEVELS < depth:
                kept += (raw[begin : first + LEVELS - before], b"null")
        else:
            depth -= brackets
            if before > LEVELS >= depth:
                begin = first + before - LEVELS
            if stop and in_metadata and depth <= _INNER:
                return b"".join((*kept, raw[begin : first + before - _INNER], b"}" * _INNER))
    return b""


def _parsed(raw: bytes) -> Json | None:
    try:
        value: Any = json.loads(raw.decode("utf-8", "replace"), parse_int=float)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
