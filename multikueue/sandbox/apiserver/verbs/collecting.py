"""
What kube-controller-manager does for every object: garbage collection by owner references, the finalizers of
foreground and orphan deletion, and the emptying of deleted namespaces.

Changes leave work behind (`Collector.note`); `collect` does all of it and returns. Nothing polls: an object that
holds up an owner or a namespace leaves new work when it goes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import attrs

from multikueue.core.model.names import Json
from multikueue.sandbox.apiserver.encoding import clone
from multikueue.sandbox.apiserver.kinds.resources import NAMESPACES, GroupResource, ResourceType
from multikueue.sandbox.apiserver.status_errors import StatusError
from multikueue.sandbox.apiserver.storage.cluster import Cluster, WriteOptions
from multikueue.sandbox.apiserver.storage.store import Entry, Key
from multikueue.sandbox.apiserver.verbs.deleting import FOREGROUND, ORPHAN, DeleteOptions, delete
from multikueue.sandbox.apiserver.verbs.updating import Target, update

_SERVER = WriteOptions(manager=None)
_BACKGROUND = DeleteOptions(propagation="Background")
_FOREGROUND = DeleteOptions(propagation="Foreground")


@attrs.frozen
class _OwnerGone:
    """Dependents of this uid lose it, and go with their last owner."""

    uid: str


@attrs.frozen
class _OwnerLeaving:
    """An owner is being deleted with a finalizer of the collector's."""

    resource: GroupResource
    key: Key
    uid: str


@attrs.frozen
class _Dependent:
    """An object was written with owner references: its owners may be gone already."""

    resource: GroupResource
    key: Key


@attrs.frozen
class _NamespaceLeaving:
    """A namespace is being deleted: everything in it goes, then it does."""

    name: str


_Work: TypeAlias = _OwnerGone | _OwnerLeaving | _Dependent | _NamespaceLeaving


def _references(obj: Json | None) -> list[Json]:
    return (obj or {}).get("metadata", {}).get("ownerReferences") or []


def _in_foreground(obj: Json) -> bool:
    """Whether it is being deleted and waits for its dependents."""
    metadata = obj["metadata"]
    return bool(metadata.get("deletionTimestamp")) and FOREGROUND in (metadata.get("finalizers") or ())


class Collector:
    """Work in the order it came up, each piece once."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._work: dict[_Work, None] = {}
        self.on_work: Callable[[], object] = lambda: None
        """Called when there is something to do."""

    def note(self, row: ResourceType, old: Json | None, new: Json | None) -> None:
        """Look at a change; to be called after every one."""
        before = len(self._work)
        for work in self._arising(row, old, new):
            self._work[work] = None
        if len(self._work) > before:
            self.on_work()

    def _arising(self, row: ResourceType, old: Json | None, new: Json | None) -> Iterator[_Work]:
        obj = new or old or {}
        metadata = obj["metadata"]
        key = (metadata.get("namespace") or "", metadata["name"])
        if new is None:
            if self._cluster.store.owns(metadata["uid"]):
                yield _OwnerGone(metadata["uid"])
            namespace = self._cluster.namespace(key[0]) if row.namespaced else None
            if namespace and namespace["metadata"].get("deletionTimestamp"):
                yield _NamespaceLeaving(key[0])
        elif metadata.get("deletionTimestamp"):
            if row.group_resource == NAMESPACES:
                yield _NamespaceLeaving(metadata["name"])
            if any(name in (FOREGROUND, ORPHAN) for name in metadata.get("finalizers") or ()):
                yield _OwnerLeaving(row.group_resource, key, metadata["uid"])
        if _references(old) != _references(new) or new is None:
            if new is not None and _references(new):
                yield _Dependent(row.group_resource, key)
            yield from self._released(key[0], _references(old))

    def _released(self, namespace: str, references: list[Json]) -> Iterator[_Work]:
        """Owners that wait for this dependent."""
        for reference in references:
            owner = self._owner(reference, namespace)
            if owner and owner[1].obj["metadata"].get("deletionTimestamp"):
                row, entry = owner
                metadata = entry.obj["metadata"]
                key = (metadata.get("namespace") or "", metadata["name"])
                yield _OwnerLeaving(row.group_resource, key, metadata["uid"])

    def collect(self) -> int:
        """Do all work there is, including what comes up while doing it; returns how many pieces."""
        done = 0
        while self._work:
            work = next(iter(self._work))
            del self._work[work]
            self._do(work)
            done += 1
        return done

    def _do(self, work: _Work) -> None:
        match work:
            case _OwnerGone(uid):
                for row, key, _ in self._dependents(uid):
                    self._look_at(row, key, gone=uid)
            case _OwnerLeaving():
                self._owner_leaving(work)
            case _Dependent(resource, key):
                served = self._cluster.any_version(resource)
                if served:
                    self._look_at(served, key)
            case _NamespaceLeaving(name):
                self._empty_namespace(name)

    def _dependents(self, uid: str) -> list[tuple[ResourceType, Key, Entry]]:
        dependents = []
        for resource, key, entry in self._cluster.store.dependents(uid):
            row = self._cluster.any_version(resource)
            if row:
                dependents.append((row, key, entry))
        return dependents

    def _owner(self, reference: Json, namespace: str) -> tuple[ResourceType, Entry] | None:
        """The owner a reference names, if it is there under the same uid."""
        row = self._cluster.type_of_kind(reference.get("apiVersion") or "", reference.get("kind") or "")
        if row is None:
            return None
        key = (namespace if row.namespaced else "", reference.get("name") or "")
        entry = self._cluster.store.get(row.group_resource, key)
        if entry is None or entry.obj["metadata"]["uid"] != reference.get("uid"):
            return None
        return row, entry

    def _is_absent(self, reference: Json, namespace: str) -> bool:
        """Whether an owner is surely gone; of a kind that is not served nothing is known."""
        served = self._cluster.type_of_kind(reference.get("apiVersion") or "", reference.get("kind") or "")
        return served is not None and self._owner(reference, namespace) is None

    def _is_waiting(self, reference: Json, namespace: str) -> bool:
        """Whether an owner is there, and is deleted in the foreground."""
        owner = self._owner(reference, namespace)
        return owner is not None and _in_foreground(owner[1].obj)

    def _look_at(self, row: ResourceType, key: Key, gone: str = "") -> None:
        """Delete a dependent that no owner keeps, in the foreground if an owner waits for it and it has dependents.

        Args:
            row: of the dependent.
            key: of the dependent.
            gone: uid of an owner that is gone, whether or not its kind is served.
        """
        entry = self._cluster.store.get(row.group_resource, key)
        references = _references(entry.obj if entry else None)
        if entry is None or not references or entry.obj["metadata"].get("deletionTimestamp"):
            return
        absent = [
            reference for reference in references if reference.get("uid") == gone or self._is_absent(reference, key[0])
        ]
        waiting = [
            reference for reference in references if reference not in absent and self._is_waiting(reference, key[0])
        ]
        if len(absent) + len(waiting) < len(references):
            for reference in (*absent, *waiting):
                self._drop_reference(row, key, reference.get("uid") or "")
            return
        dependents = self._dependents(entry.obj["metadata"]["uid"]) if waiting else []
        circular = any(_in_foreground(dependent.obj) for _, _, dependent in dependents)
        self._delete(row, key, _FOREGROUND if dependents and not circular else _BACKGROUND)

    def _owner_leaving(self, work: _OwnerLeaving) -> None:
        row, entry = self._cluster.any_version(work.resource), self._cluster.store.get(work.resource, work.key)
        if not row or not entry or entry.obj["metadata"]["uid"] != work.uid:
            return
        finalizers = entry.obj["metadata"].get("finalizers") or []
        if ORPHAN in finalizers:
            for child, key, _ in self._dependents(work.uid):
                self._drop_reference(child, key, work.uid)
        elif FOREGROUND in finalizers:
            for child, key, _ in self._dependents(work.uid):
                self._look_at(child, key)
        if not self._is_blocked(work.uid):
            self._release(row, work.key)

    def _is_blocked(self, uid: str) -> bool:
        return any(
            reference.get("uid") == uid and reference.get("blockOwnerDeletion")
            for _, _, entry in self._cluster.store.dependents(uid)
            for reference in _references(entry.obj)
        )

    def _release(self, row: ResourceType, key: Key) -> None:
        """Take the collector's own finalizers off an owner."""
        entry = self._cluster.store.get(row.group_resource, key)
        if entry is None:
            return
        owner = clone(row.viewed(entry.obj))
        kept = [name for name in owner["metadata"].get("finalizers") or [] if name not in (FOREGROUND, ORPHAN)]
        owner["metadata"]["finalizers"] = kept
        self._update(row, key, owner)

    def _empty_namespace(self, name: str) -> None:
        namespace = self._cluster.namespace(name)
        if not namespace or not namespace["metadata"].get("deletionTimestamp"):
            return
        left = False
        for resource, bucket in list(self._cluster.store.buckets.items()):
            row = self._cluster.any_version(resource)
            for key in list(bucket.keys_of(name)) if row and row.namespaced else ():
                if row:
                    self._delete(row, key)
                    left = left or key in bucket.objects
        if not left:
            self._cluster.remove(self._cluster.namespace_type, ("", name))

    def _delete(self, row: ResourceType, key: Key, how: DeleteOptions = _BACKGROUND) -> None:
        try:
            delete(self._cluster, Target(row, key[0] or None, key[1]), how)
        except StatusError:
            return  # it is gone already, which is what was wanted

    def _drop_reference(self, row: ResourceType, key: Key, uid: str) -> None:
        entry = self._cluster.store.get(row.group_resource, key)
        if entry is None:
            return
        child = clone(row.viewed(entry.obj))
        kept = [reference for reference in _references(child) if reference.get("uid") != uid]
        child["metadata"]["ownerReferences"] = kept
        self._update(row, key, child)

    def _update(self, row: ResourceType, key: Key, obj: Json) -> None:
        try:
            update(self._cluster, Target(row, key[0] or None, key[1]), obj, _SERVER, is_patch=True)
        except StatusError:
            return  # an object that no longer passes validation keeps its reference, as on a real cluster
