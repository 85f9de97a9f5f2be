"""A line of a watch: the event that it tells."""

from __future__ import annotations

from typing import Any

from multikueue.core.model.objects import dig
from multikueue.core.model.shape import has_name
from multikueue.errors import Unreachable, Unreadable
from multikueue.kube.http.error_mapping import decoded, error_of_status
from multikueue.kube.informers.known_specs import with_known_spec
from multikueue.kube.informers.list_pages import UNDECODABLE
from multikueue.kube.informers.truncated_json import mended_event
from multikueue.protocols import Known, WatchEvent


def parsed(begin: str, line: bytes, known: Known | None = None) -> WatchEvent:
    """Parse a line of a watch.

    Args:
        begin: the beginning of error messages.
        line: with its end.
        known: see `Watcher.watch`.

    Raises:
        Unreadable: it is a whole line and tells of no object: a list must go past it.
        Unreachable: it is cut off.
        ApiError: it is an ERROR event.
    """
    event, whole = with_known_spec(line, known) or decoded(line), line.endswith(b"\n")
    read = (mended_event(line) if event is None and whole else event) or {}
    kind, obj = read.get("type"), read.get("object")
    if isinstance(obj, dict) and kind == "ERROR":
        raise error_of_status(begin, obj)
    if isinstance(obj, dict) and isinstance(kind, str) and (_has_version(obj) if kind == "BOOKMARK" else has_name(obj)):
        return WatchEvent(kind, obj, len(line), "" if event is read else UNDECODABLE)
    if whole:
        raise Unreadable(f"{begin}: a line of the stream is not an event")
    raise Unreachable(f"{begin}: a line of the stream is cut off")


def _has_version(obj: Any) -> bool:
    return isinstance(dig(obj, "metadata", "resourceVersion"), str)
