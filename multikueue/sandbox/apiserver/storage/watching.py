"""
The verb watch: a position in a resource's log, and what a watcher with a selector gets to see from there.

An object that comes to match is ADDED for this watcher, one that no longer matches is DELETED, whatever really
happened to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import attrs

from multikueue.sandbox.apiserver.encoding import clone
from multikueue.sandbox.apiserver.kinds.resources import ResourceType
from multikueue.sandbox.apiserver.status_errors import Cause, StatusError, expired, invalid
from multikueue.sandbox.apiserver.storage.cluster import Cluster
from multikueue.sandbox.apiserver.storage.selectors import EVERYTHING, Selector
from multikueue.sandbox.apiserver.storage.store import Change, Entry

EventType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED"]


@attrs.frozen(eq=False)
class Emission:
    """One event for one watcher."""

    type: EventType
    entry: Entry


@attrs.frozen
class WatchOptions:
    """What to watch.

    Attributes:
        revision: the resourceVersion parameter: empty or `0` starts with the objects that are there.
        timeout: seconds until the server ends the stream; None for its own choice.
        bookmarks: whether the client wants them.
        initial_events: `sendInitialEvents`; None when not given.
    """

    selector: Selector = EVERYTHING
    revision: str = ""
    timeout: float | None = None
    bookmarks: bool = False
    initial_events: bool | None = None

    @classmethod
    def from_query(cls, row: ResourceType, query: Mapping[str, str], name: str | None) -> WatchOptions:
        """Read the parameters of a URL.

        Raises:
            StatusError: a parameter cannot be read (500 for the resourceVersion, as the real server answers).
        """
        revision = query.get("resourceVersion", "")
        if revision and not revision.isdigit():
            problem = f'strconv.ParseUint: parsing "{revision}": invalid syntax'
            raise StatusError(500, "", f'resourceVersion: Invalid value: "{revision}": {problem}')
        initial = query.get("sendInitialEvents")
        if initial and query.get("resourceVersionMatch") != "NotOlderThan":
            rule = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            raise invalid(row, "", [Cause("FieldValueForbidden", "resourceVersionMatch", f"Forbidden: {rule}")])
        selector = Selector.parse(row, query.get("labelSelector", ""), query.get("fieldSelector", ""), name)
        timeout = query.get("timeoutSeconds", "")
        return cls(
            selector,
            revision,
            float(timeout) if timeout.isdigit() and int(timeout) else None,
            is_true(query.get("allowWatchBookmarks")),
            is_true(initial) if initial else None,
        )


def is_true(text: str | None) -> bool:
    """A boolean URL parameter as Go clients, Python clients and people write it."""
    return text is not None and text.lower() not in ("false", "0")


class WatchCursor:
    """Where one watcher is."""

    def __init__(self, cluster: Cluster, row: ResourceType, namespace: str | None, options: WatchOptions) -> None:
        self.options = options
        self.row = row
        self._cluster = cluster
        self._namespace = namespace
        self._bucket = cluster.store.bucket(row.group_resource)
        self._position = self._bucket.log_end
        self._last = cluster.store.revision

    @property
    def finished(self) -> bool:
        """The kind is no longer served and everything has been read."""
        row = self.row
        served = (row.group, row.version, row.plural) in self._cluster.types
        return self._caught_up and (self._bucket.closed or not served)

    @property
    def _caught_up(self) -> bool:
        return self._position >= self._bucket.log_end

    @property
    def revision(self) -> int:
        """Everything up to this revision has been seen: where a bookmark points."""
        return self._cluster.store.revision if self._caught_up else self._last

    def start(self) -> list[Emission]:
        """Find the first position; returns the objects that are there, if they are asked for.

        Raises:
            StatusError: 410, the revision is too old.
        """
        options, bucket = self.options, self._bucket
        initial = options.initial_events
        if initial is None:
            initial = options.revision in ("", "0")
        if initial:
            entries = (bucket.objects[key] for key in bucket.keys_of(self._namespace))
            return [Emission("ADDED", entry) for entry in entries if self.options.selector.matches(entry)]
        if options.revision:
            since = int(options.revision)
            if since < bucket.oldest:
                raise expired(since, bucket.oldest)
            self._position = bucket.position_after(since)
            self._last = since
        return []

    def poll(self, limit: int = 500) -> list[Emission]:
        """The events since the last call, at most about `limit`.

        Raises:
            StatusError: 410, the log has moved past this watcher.
        """
        bucket, emissions = self._bucket, list[Emission]()
        if self._position < bucket.log_start:
            raise expired(self._last, bucket.oldest)
        while self._position < bucket.log_end and len(emissions) < limit:
            change = bucket.log[self._position - bucket.log_start]
            self._position += 1
            self._last = change.revision
            if self._namespace is None or change.key[0] == self._namespace:
                emission = self._seen(change)
                if emission:
                    emissions.append(emission)
        return emissions

    def _seen(self, change: Change) -> Emission | None:
        now = not change.deleted and self.options.selector.matches(change.new)
        before = change.old is not None and self.options.selector.matches(change.old)
        if now:
            return Emission("MODIFIED" if before else "ADDED", change.new)
        if not before or change.old is None:
            return None
        return Emission("DELETED", change.new if change.deleted else _departed(change.old, change.revision))

    async def wait(self) -> None:
        """Wait until `poll` has something to look at."""
        if self._caught_up and not self._bucket.closed:
            await self._bucket.wait()


def _departed(old: Entry, revision: int) -> Entry:
    """The last matching state of an object that left the selector, at the revision at which it left."""
    last = clone(old.obj)
    last["metadata"]["resourceVersion"] = str(revision)
    return Entry(revision, last)
