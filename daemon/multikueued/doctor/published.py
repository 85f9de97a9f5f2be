"""What the leader has seen of workers, as it stands in its ConfigMap: one document for each worker.

It is read by more people than may read workers' credentials, so it has names of kinds, queues and namespaces, quotas
and words without addresses. Clocks are told relative to the manager's: the reader's machine has another one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import attrs

from multikueue.core.model.conditions import condition, parse_timestamp, timestamp
from multikueue.core.model.names import GVK, Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueue.core.model.worker_kueue import FIELDS, WorkerKueue
from multikueue.core.workload.check_message import plain
from multikueued.doctor.worker_facts import ClockBound, KubeconfigFacts, NotChecked, Permission, WorkerFacts
from multikueued.settings.leader import FindingsSettings
from multikueued.tokens.bound import bound_by
from multikueued.workers.move_targets import QueuesOnWorker

NAME: Final = str(FindingsSettings().config_map_name)
"""The ConfigMap's name, unless the daemon's settings name another."""
LABEL: Final = "multikueue.dev/findings"
"""By it the ConfigMap is found, whatever its name is."""
TOO_LARGE: Final = 1_000_000
"""Characters of a document that are not even parsed."""
MOST: Final = 64 << 10
"""Bytes of one worker's document; all together have room for `TOGETHER`."""
TOGETHER: Final = 800 << 10
"""Bytes of all documents: an object has at most a megabyte."""
_END: Final = ".json"
_WHO: Final = "ask somebody who may read the worker's Secret to run multikueue doctor"


@attrs.frozen
class Published:
    """What the leader has seen of one worker."""

    facts: WorkerFacts
    """Its clock is how far it is ahead of the manager's. Of the permissions only those that it lacks are told."""
    at: datetime | None = None
    """When it was looked at; None: only its quotas have been read yet."""
    not_checked: tuple[NotChecked, ...] = ()
    quota_at: datetime | None = None
    """When its queues were read last; None: never."""
    credentials: KubeconfigFacts | None = None
    """When the credentials in use expire; None: it is not known."""

    def on_this_machine(self, manager: ClockBound | None) -> WorkerFacts:
        """The facts with the clock as seen from here, where the manager's is known."""
        ahead = self.facts.clock
        if ahead is None or manager is None:
            return attrs.evolve(self.facts, clock=None)
        return attrs.evolve(self.facts, clock=ClockBound(ahead.low + manager.high, ahead.high + manager.low))


def seen(facts: WorkerFacts, manager: ClockBound | None) -> WorkerFacts:
    """The facts as they are published, of what was seen from a machine that sees the manager's clock so."""
    clock = facts.clock.ahead_of(manager) if facts.clock is not None and manager is not None else None
    missing = tuple(one for one in facts.permissions if not one.allowed)
    return attrs.evolve(facts, error=plain(facts.error), clock=clock, permissions=missing)


def written(one: Published, limit: int = MOST) -> str:
    """The document of a worker; what does not fit is left out, and named as not checked."""
    told = _dumped(one)
    for what, without in _LESS:
        if len(told) <= limit:
            return told
        gap = NotChecked(f"{what} of {one.facts.name}", _MANY, _WHO)
        one = attrs.evolve(one, facts=without(one.facts), not_checked=(*one.not_checked, gap))
        told = _dumped(one)
    if len(told) <= limit:
        return told
    gap = NotChecked(f"{one.facts.name} itself", "there is more than can be published", _WHO, one.facts.name)
    return _dumped(Published(WorkerFacts(one.facts.name), one.at, (gap,)))


_MANY: Final = "there are more than can be published"
_LESS: Final[tuple[tuple[str, Callable[[WorkerFacts], WorkerFacts]], ...]] = (
    ("namespaces", lambda facts: attrs.evolve(facts, namespaces=None)),
    ("queues and quotas", lambda facts: attrs.evolve(facts, queues=None, queues_unseen=_MANY)),
)


def _dumped(one: Published) -> str:
    facts, queues = one.facts, one.facts.queues
    document: Json = {
        "at": timestamp(one.at) if one.at is not None else None,
        "quotaAt": timestamp(one.quota_at) if one.quota_at is not None else None,
        "error": facts.error,
        "cause": facts.cause,
        "latency": round(facts.latency, 3) if facts.latency is not None else None,
        "clock": [round(facts.clock.low, 3), round(facts.clock.high, 3)] if facts.clock is not None else None,
        "permissions": [attrs.astuple(missing)[:5] for missing in facts.permissions],
        "lacking": sorted([gvk.group, gvk.version, gvk.kind] for gvk in facts.lacking),
        "namespaces": sorted(facts.namespaces) if facts.namespaces is not None else None,
        "localQueues": _local(queues) if queues is not None else None,
        "clusterQueues": dict(sorted(queues.cluster.items())) if queues is not None else None,
        "queuesUnseen": plain(facts.queues_unseen),
        "kueue": _kueue(facts.kueue) if facts.kueue is not None else None,
        "credentials": _dates(one.credentials) if one.credentials is not None else None,
        "notChecked": [[plain(text) for text in (gap.what, gap.why, gap.who)] for gap in one.not_checked],
    }
    kept = {name: value for name, value in document.items() if value not in (None, "", [])}
    return json.dumps(kept, separators=(",", ":"))


def _kueue(one: WorkerKueue) -> Json:
    return {"version": one.version, "missing": sorted(one.missing), "read": one.read}


def _kueue_in(told: Any) -> WorkerKueue | None:
    if told is None:
        return None
    version, missing = told["version"], frozenset(map(str, told["missing"]))
    known = (int(version[0]), int(version[1])) if version is not None else None
    return WorkerKueue(known, missing.intersection(FIELDS), read=bool(told["read"]))


def _dates(one: KubeconfigFacts) -> Json:
    times = {"tokenExpires": one.token_expires, "certificateExpires": one.certificate_expires}
    told: Json = {name: timestamp(at) for name, at in times.items() if at is not None}
    return {"secret": one.secret, **told, "bound": dict(one.bound.annotations) if one.bound is not None else {}}


def _credentials(told: Any) -> KubeconfigFacts | None:
    if told is None:
        return None
    times = [parse_timestamp(told.get(field)) for field in ("tokenExpires", "certificateExpires")]
    return KubeconfigFacts(str(told["secret"]), "", times[0], times[1], bound_by(dict(told.get("bound") or {})))


def _local(queues: QueuesOnWorker) -> Json:
    found: dict[str, dict[str, str]] = {}
    for key, leads in sorted(queues.local.items()):
        found.setdefault(key.namespace, {})[key.name] = leads
    return found


def config_map(namespace: str, name: str, documents: Mapping[str, str]) -> Json:
    """The ConfigMap with the documents of workers."""
    labels = {"app.kubernetes.io/name": "multikueued", LABEL: ""}
    metadata: Json = {"namespace": namespace, "name": name, "labels": labels}
    data = {f"{worker}{_END}": text for worker, text in sorted(documents.items())}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def merged(found: Sequence[Json]) -> Json | None:
    """The documents of several daemons as one ConfigMap; of two about a worker the one that the first has."""
    data = {name: text for one in reversed(found) for name, text in (one.get("data") or {}).items()}
    return {**found[0], "data": data} if found else None


def published_in(stored: Json | None) -> dict[str, Published]:
    """What a ConfigMap tells, by worker. A document that is none is left out: anybody with the permission writes it."""
    data = (stored or {}).get("data") or {}
    found = {name.removesuffix(_END): _read(name.removesuffix(_END), data[name]) for name in sorted(data)}
    return {name: one for name, one in found.items() if one is not None}


def _read(name: str, text: object) -> Published | None:
    if not isinstance(text, str) or len(text) > TOO_LARGE:
        return None
    try:
        document = json.loads(text)
        return _published(name, document) if isinstance(document, dict) else None
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError, OverflowError):
        return None


def _published(name: str, document: Json) -> Published:
    clock, namespaces = document.get("clock"), document.get("namespaces")
    latency = document.get("latency")
    facts = WorkerFacts(
        name,
        error=str(document.get("error") or ""),
        cause=str(document.get("cause") or ""),
        latency=float(latency) if latency is not None else None,
        clock=ClockBound(float(clock[0]), float(clock[1])) if clock is not None else None,
        permissions=tuple(_permission(one) for one in document.get("permissions") or ()),
        lacking=frozenset(GVK(*_texts(one, 3)) for one in document.get("lacking") or ()),
        namespaces=frozenset(map(str, namespaces)) if namespaces is not None else None,
        queues=_queues(document),
        queues_unseen=str(document.get("queuesUnseen") or ""),
        kueue=_kueue_in(document.get("kueue")),
    )
    gaps = tuple(NotChecked(*_texts(one, 3)) for one in document.get("notChecked") or ())
    at, quota_at = (parse_timestamp(document.get(field)) for field in ("at", "quotaAt"))
    return Published(facts, at, gaps, quota_at, _credentials(document.get("credentials")))


def _permission(one: Any) -> Permission:
    verb, resource, group, namespace, name = _texts(one, 5)
    return Permission(verb, resource, group, namespace, name, allowed=False)


def _texts(values: Iterable[Any], count: int) -> list[str]:
    found = [str(value) for value in values]
    if len(found) != count:
        raise ValueError(f"{count} texts were expected")
    return found


def _queues(document: Json) -> QueuesOnWorker | None:
    local, cluster = document.get("localQueues"), document.get("clusterQueues")
    if local is None:
        return None
    keys = {
        ObjectKey(str(namespace), str(queue)): str(leads)
        for namespace, queues in local.items()
        for queue, leads in queues.items()
    }
    return QueuesOnWorker(keys, {str(queue): _queue(str(queue), one) for queue, one in (cluster or {}).items()})


def _queue(name: str, told: Json) -> Json:
    """A ClusterQueue as the checks look at it."""
    return {"metadata": {"name": name}, "spec": dict(told["spec"]), "status": dict(told.get("status") or {})}


_SPEC: Final = ("cohortName", "cohort", "stopPolicy", "admissionChecks", "admissionChecksStrategy")
"""What is kept of a ClusterQueue's spec beside its quotas."""


def slim(queues: QueuesOnWorker) -> QueuesOnWorker:
    """The ClusterQueues that LocalQueues lead to, with no more than what is looked at: quota and what is used of it."""
    reached = set(queues.local.values())
    return QueuesOnWorker(queues.local, {name: _slim(one) for name, one in queues.cluster.items() if name in reached})


def _slim(queue: Json) -> Json:
    spec: Json = {field: found for field in _SPEC if (found := dig(queue, "spec", field)) is not None}
    spec["resourceGroups"] = [
        {
            "coveredResources": group.get("coveredResources") or [],
            "flavors": _amounts(group.get("flavors"), ("nominalQuota", "borrowingLimit")),
        }
        for group in dig(queue, "spec", "resourceGroups") or []
    ]
    status: Json = {
        "flavorsUsage": _amounts(dig(queue, "status", "flavorsUsage"), ("total", "borrowed")),
        "flavorsReservation": _amounts(dig(queue, "status", "flavorsReservation"), ("total",)),
    }
    active = condition(queue, "Active")
    if active is not None:
        status["conditions"] = [{"type": "Active", "status": active.get("status")}]
    return {"spec": spec, "status": status}


def _amounts(flavors: Iterable[Json] | None, fields: tuple[str, ...]) -> list[Json]:
    return [
        {
            "name": flavor.get("name"),
            "resources": [
                {"name": one.get("name"), **{field: one[field] for field in fields if one.get(field) is not None}}
                for one in flavor.get("resources") or []
            ],
        }
        for flavor in flavors or []
    ]
