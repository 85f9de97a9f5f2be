"""Times as people read them in a table: `5s`, `3m20s`, `4d`, as k8s.io/apimachinery's HumanDuration writes them."""

from __future__ import annotations

from datetime import datetime

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86_400, 31_536_000
# Below this many seconds: the unit, and the smaller unit that is shown beside it.
_SCALES = (
    (120, "s", 1, "", 0),
    (10 * _MINUTE, "m", _MINUTE, "s", 1),
    (180 * _MINUTE, "m", _MINUTE, "", 0),
    (8 * _HOUR, "h", _HOUR, "m", _MINUTE),
    (48 * _HOUR, "h", _HOUR, "", 0),
    (8 * _DAY, "d", _DAY, "h", _HOUR),
    (2 * _YEAR, "d", _DAY, "", 0),
    (8 * _YEAR, "y", _YEAR, "d", _DAY),
)


def human_duration(seconds: float) -> str:
    """Two or three significant figures; a clock up to two seconds ahead counts as now."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    whole = max(whole, 0)
    for limit, unit, size, minor, minor_size in _SCALES:
        if whole < limit:
            rest = whole % size // minor_size if minor_size else 0
            return f"{whole // size}{unit}" + (f"{rest}{minor}" if rest else "")
    return f"{whole // _YEAR}y"


def parse_time(text: object) -> datetime | None:
    """Read an RFC 3339 time; None if it is not one."""
    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return moment if moment and moment.tzinfo else None


def age(text: object, now: datetime) -> str:
    """How long ago a timestamp was; `<unknown>` without one, `<invalid>` if it is none."""
    if not text:
        return "<unknown>"
    moment = parse_time(text)
    return human_duration((now - moment).total_seconds()) if moment else "<invalid>"
