"""What the leader has seen of workers, as it stands in its ConfigMap: one document for each worker.

It is read by more people than may read workers' credentials, so it has names of kinds, queues and namespaces, quotas
and words without addresses. Clocks are told relative to the manager's: the reader's machine has another one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import attrs
import cattrs
import orjson
from cattrs.preconf.orjson import make_converter

from multikueue.core.model.conditions import condition, parse_timestamp, timestamp
from multikueue.core.model.names import GVK, Json, ObjectKey
from multikueue.core.model.outside_text import plain
from multikueued.reports.worker_facts import ClockBound, KubeconfigFacts, NotChecked, WorkerFacts
from multikueued.reports.worker_queues import QueuesOnWorker
from multikueued.settings.config import Settings
from multikueued.tokens.bound import Bound, bound_in

NAME: Final = Settings().findings_config_map
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
    missing = tuple(permission for permission in facts.permissions if not permission.allowed)
    latency = round(facts.latency, 3) if facts.latency is not None else None
    return attrs.evolve(facts, error=plain(facts.error), clock=clock, permissions=missing, latency=latency)


def written(published: Published, limit: int = MOST) -> str:
    """The document of a worker; what does not fit is left out, and named as not checked."""
    document = _dumped(published)
    for what, without in _LESS:
        if len(document.encode()) <= limit:
            return document
        gap = NotChecked(f"{what} of {published.facts.name}", _MANY, _WHO)
        published = attrs.evolve(published, facts=without(published.facts), not_checked=(*published.not_checked, gap))
        document = _dumped(published)
    if len(document.encode()) <= limit:
        return document
    gap = NotChecked(
        f"{published.facts.name} itself", "there is more than can be published", _WHO, published.facts.name
    )
    return _dumped(Published(WorkerFacts(published.facts.name), published.at, (gap,)))


_MANY: Final = "there are more than can be published"
_LESS: Final[tuple[tuple[str, Callable[[WorkerFacts], WorkerFacts]], ...]] = (
    ("which job copies do not end", lambda facts: attrs.evolve(facts, overdue=None)),
    ("namespaces", lambda facts: attrs.evolve(facts, namespaces=None, terminating=frozenset())),
    ("queues and quotas", lambda facts: attrs.evolve(facts, queues=None, queues_unseen=_MANY)),
)


def _dumped(published: Published) -> str:
    gaps = tuple(NotChecked(plain(gap.what), plain(gap.why), plain(gap.who)) for gap in published.not_checked)
    facts = attrs.evolve(published.facts, queues_unseen=plain(published.facts.queues_unseen))
    return _CONVERTER.dumps(
        attrs.evolve(published, facts=facts, not_checked=gaps), option=orjson.OPT_SORT_KEYS
    ).decode()


def as_time(value: Any, _: Any) -> datetime:
    """A time as JSON has it, for a converter; raises ValueError."""
    if (moment := parse_timestamp(value)) is None:
        raise ValueError("no time")
    return moment


def _queues(document: Any, _: Any) -> QueuesOnWorker:
    """ClusterQueues as the checks look at them."""
    local = {ObjectKey.parsed(key): str(leads) for key, leads in document["local"].items()}
    cluster = {
        name: {"metadata": {"name": name}, "spec": dict(queue["spec"]), "status": dict(queue.get("status") or {})}
        for name, queue in document["cluster"].items()
    }
    return QueuesOnWorker(local, cluster, frozenset(map(ObjectKey.parsed, document.get("stopped") or ())))


def _bound(annotations: Any, _: Any) -> Bound:
    """As a Secret says it, with the same checks: it goes into commands."""
    if (bound := bound_in({"metadata": {"annotations": dict(annotations)}})) is None:
        raise ValueError("no bound token")
    return bound


_CONVERTER: Final = make_converter(omit_if_default=True)
_CONVERTER.register_unstructure_hook(Bound, lambda bound: dict(bound.annotations))
_CONVERTER.register_structure_hook(Bound, _bound)
_CONVERTER.register_unstructure_hook(datetime, timestamp)
_CONVERTER.register_structure_hook(datetime, as_time)
_CONVERTER.register_unstructure_hook(ObjectKey, str)
_CONVERTER.register_structure_hook(ObjectKey, lambda key, _: ObjectKey.parsed(str(key)))
_CONVERTER.register_structure_hook(QueuesOnWorker, _queues)
_CONVERTER.register_structure_hook(GVK, lambda names, _: GVK(*map(str, names)))


def config_map(namespace: str, name: str, documents: Mapping[str, str]) -> Json:
    """The ConfigMap with the documents of workers."""
    labels = {"app.kubernetes.io/name": "multikueued", LABEL: ""}
    metadata: Json = {"namespace": namespace, "name": name, "labels": labels}
    data = {f"{worker}{_END}": text for worker, text in sorted(documents.items())}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def merged(config_maps: Sequence[Json]) -> Json | None:
    """The documents of several daemons as one ConfigMap; of two about a worker the one that the first has."""
    data = {name: text for config_map in reversed(config_maps) for name, text in (config_map.get("data") or {}).items()}
    return {**config_maps[0], "data": data} if config_maps else None


def published_in(stored: Json | None) -> dict[str, Published]:
    """What a ConfigMap tells, by worker. A document that is none is left out: anybody with the permission writes it."""
    data = (stored or {}).get("data") or {}
    documents = {name.removesuffix(_END): _read(name.removesuffix(_END), data[name]) for name in sorted(data)}
    return {name: document for name, document in documents.items() if document is not None}


def _read(name: str, text: object) -> Published | None:
    if not isinstance(text, str) or len(text) > TOO_LARGE:
        return None
    try:
        document = orjson.loads(text)
        return _CONVERTER.structure({**document, "facts": {**document["facts"], "name": name}}, Published)
    except (cattrs.BaseValidationError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _figures(*fields: str) -> list[Json]:
    return [{"name": None, "resources": [dict.fromkeys(("name", *fields))]}]


_SLIM: Final = {
    "spec": {
        **dict.fromkeys(("cohortName", "cohort", "stopPolicy", "admissionChecks", "admissionChecksStrategy")),
        "resourceGroups": [{"coveredResources": None, "flavors": _figures("nominalQuota", "borrowingLimit")}],
    },
    "status": {"flavorsUsage": _figures("total", "borrowed"), "flavorsReservation": _figures("total")},
}
"""What is kept of a ClusterQueue, in its form: None stands for a value as it is."""


def slim(queues: QueuesOnWorker) -> QueuesOnWorker:
    """The ClusterQueues that LocalQueues lead to, with no more than what is looked at: quota and what is used of it."""
    reached = set(queues.local.values())
    cluster = {name: _slim(queue) for name, queue in queues.cluster.items() if name in reached}
    return attrs.evolve(queues, cluster=cluster)


def _slim(queue: Json) -> Json:
    slimmed: Json = {"spec": {}, "status": {}, **_of_form(queue, _SLIM)}
    active = condition(queue, "Active")
    if active is not None:
        shown: Json = {"type": "Active", "status": active.get("status")}
        if shown["status"] == "False":
            shown |= {field: plain(str(active.get(field) or "")) for field in ("reason", "message")}
        slimmed["status"]["conditions"] = [shown]
    return slimmed


def _of_form(value: Any, form: Any) -> Any:
    """What a form names of a value: of an object its fields, of a list the same of each entry."""
    match form:
        case dict():
            return {
                field: _of_form(value[field], inner) for field, inner in form.items() if value.get(field) is not None
            }
        case list():
            return [_of_form(entry, form[0]) for entry in value]
    return value
