"""
The versioned store: one revision counter, and per resource the objects and a bounded log of what happened to them.

An object is encoded once per revision; lists, watches and the log share those bytes. The log keeps only bytes and
labels of superseded revisions, not decoded objects. Watchers hold a position in the log, not a queue each, so a
slow watcher costs no memory: when the log has moved past it, it gets 410 and lists again.
"""

from __future__ import annotations

import bisect
import collections
from collections.abc import Iterator
from typing import TypeAlias

import anyio
import attrs

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.encoding import clone, decode, encode_answer
from multikueue.sandbox.apiserver.kinds.resources import GroupResource
from multikueue.sandbox.apiserver.status_errors import expired

Key: TypeAlias = tuple[str, str]
"""Namespace (empty for cluster-scoped objects) and name."""


class Entry:
    """One object at one revision. Treat `obj` as read-only: it is shared."""

    __slots__ = ("_obj", "labels", "raw", "revision")

    def __init__(self, revision: int, obj: Json) -> None:
        self.revision = revision
        self.raw = encode_answer(obj)
        self.labels: Json = obj["metadata"].get("labels") or {}
        self._obj: Json | None = obj

    @property
    def obj(self) -> Json:
        """The decoded object."""
        if self._obj is None:
            decoded: Json = decode(self.raw)
            return decoded
        return self._obj

    def release(self) -> None:
        """Keep only the bytes: the entry is history now."""
        self._obj = None


@attrs.frozen(eq=False)
class Change:
    """One line of the log. `old` is absent for creations; a deletion's `new` is the final state."""

    revision: int
    key: Key
    old: Entry | None
    new: Entry
    deleted: bool = False


class Bucket:
    """All objects of one resource, sorted by key, and their log."""

    def __init__(self, history: int, revision: int) -> None:
        self.objects: dict[Key, Entry] = {}
        self.keys: list[Key] = []
        self.log: collections.deque[Change] = collections.deque(maxlen=history)
        self.log_start = 0
        """Position of `log[0]`, counted since the beginning of time."""
        self.oldest = revision
        """Changes up to this revision are forgotten."""
        self.closed = False
        """The resource is gone: watches end."""
        self._changed: anyio.Event | None = None

    @property
    def log_end(self) -> int:
        """The position the next change will have."""
        return self.log_start + len(self.log)

    def append(self, change: Change) -> None:
        """Log a change and wake everyone who waits for one."""
        if len(self.log) == self.log.maxlen:
            self.oldest = self.log[0].revision
            self.log_start += 1
        self.log.append(change)
        self.wake()

    def position_after(self, revision: int) -> int:
        """Where a reader who has seen everything up to `revision` continues."""
        position = self.log_end
        for change in reversed(self.log):
            if change.revision <= revision:
                break
            position -= 1
        return position

    def keys_of(self, namespace: str | None) -> list[Key]:
        """The keys in order; of one namespace, or of all for None."""
        if namespace is None:
            return self.keys
        start = bisect.bisect_left(self.keys, (namespace, ""))
        return self.keys[start : bisect.bisect_left(self.keys, (namespace + "\0", ""))]

    def forget(self, revision: int) -> None:
        """Drop the whole log."""
        self.log_start += len(self.log)
        self.log.clear()
        self.oldest = revision
        self.wake()

    def close(self) -> None:
        """End all watches once they have read the log."""
        self.closed = True
        self.wake()

    def wake(self) -> None:
        """Let every waiter look again."""
        if self._changed is not None:
            self._changed.set()
            self._changed = None

    async def wait(self) -> None:
        """Wait for the next change."""
        if self._changed is None:
            self._changed = anyio.Event()
        await self._changed.wait()


class Store:
    """Objects of all resources under one revision counter. Knows nothing about kinds."""

    def __init__(self, history: int) -> None:
        self.revision = 1
        self.buckets: dict[GroupResource, Bucket] = {}
        self._history = history
        self._owned: dict[str, dict[tuple[GroupResource, Key], None]] = {}

    def bucket(self, resource: GroupResource) -> Bucket:
        """The objects of a resource; made on first use."""
        bucket = self.buckets.get(resource)
        if bucket is None:
            bucket = self.buckets[resource] = Bucket(self._history, self.revision - 1)
        return bucket

    def get(self, resource: GroupResource, key: Key) -> Entry | None:
        """The current state of an object."""
        bucket = self.buckets.get(resource)
        return bucket.objects.get(key) if bucket else None

    def put(self, resource: GroupResource, key: Key, obj: Json) -> Entry:
        """Create or replace; sets the object's resourceVersion and takes the object over."""
        bucket = self.bucket(resource)
        self.revision += 1
        obj["metadata"]["resourceVersion"] = str(self.revision)
        entry, old = Entry(self.revision, obj), bucket.objects.get(key)
        if old is None:
            bisect.insort(bucket.keys, key)
        bucket.objects[key] = entry
        self._index(resource, key, old.obj if old else None, obj)
        if old:
            old.release()
        bucket.append(Change(self.revision, key, old, entry))
        return entry

    def remove(self, resource: GroupResource, key: Key) -> Entry:
        """Delete; the returned final state carries the revision of the deletion."""
        bucket = self.bucket(resource)
        old = bucket.objects.pop(key)
        bucket.keys.pop(bisect.bisect_left(bucket.keys, key))
        self._index(resource, key, old.obj, None)
        self.revision += 1
        final = clone(old.obj)
        final["metadata"]["resourceVersion"] = str(self.revision)
        entry = Entry(self.revision, final)
        old.release()
        bucket.append(Change(self.revision, key, old, entry, deleted=True))
        return entry

    def drop(self, resource: GroupResource) -> None:
        """Delete every object of a resource and end its watches."""
        bucket = self.buckets.get(resource)
        if bucket is None:
            return
        for key in list(bucket.keys):
            self.remove(resource, key)
        bucket.close()
        del self.buckets[resource]

    def _index(self, resource: GroupResource, key: Key, old: Json | None, new: Json | None) -> None:
        for uid in _owners(old):
            owned = self._owned[uid]
            owned.pop((resource, key), None)
            if not owned:
                del self._owned[uid]
        for uid in _owners(new):
            self._owned.setdefault(uid, {})[resource, key] = None

    def owns(self, uid: str) -> bool:
        """Whether any object names this uid as an owner."""
        return uid in self._owned

    def dependents(self, uid: str) -> list[tuple[GroupResource, Key, Entry]]:
        """The objects that name this uid as an owner, in the order they came to do so."""
        entries = []
        for resource, key in self._owned.get(uid, ()):
            entry = self.get(resource, key)
            if entry is not None:
                entries.append((resource, key, entry))
        return entries

    def compact(self) -> None:
        """Forget all history: a watch or an exact list from an older revision gets 410."""
        for bucket in self.buckets.values():
            bucket.forget(self.revision)

    def snapshot(self, resource: GroupResource, revision: int) -> tuple[list[Key], dict[Key, Entry]]:
        """Keys and objects as they were at a revision.

        Raises:
            StatusError: 410, the log does not reach back that far.
        """
        bucket = self.bucket(resource)
        if revision >= self.revision:
            return bucket.keys, bucket.objects
        if revision < bucket.oldest:
            raise expired(revision, bucket.oldest)
        objects = dict(bucket.objects)
        for change in reversed(bucket.log):
            if change.revision <= revision:
                break
            if change.old is None:
                objects.pop(change.key, None)
            else:
                objects[change.key] = change.old
        return sorted(objects), objects


def _owners(obj: Json | None) -> Iterator[str]:
    """The distinct uids of the owner references."""
    references = (obj or {}).get("metadata", {}).get("ownerReferences") or ()
    yield from dict.fromkeys(reference.get("uid") or "" for reference in references)
