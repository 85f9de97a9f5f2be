"""What `multikueue doctor --fix` would do: only to our own webhook's registration, and to annotations of ours.

Gates, RBAC, quotas, queues, configs and jobs are their owners' to change.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from multikueue.core.admission.registration import WEBHOOK
from multikueue.core.model.conditions import parse_timestamp
from multikueue.core.model.kinds import MUTATING_WEBHOOKS, WORKLOAD
from multikueue.core.model.labels import RETRY_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import annotations_of, resource_version, uid
from multikueued.reports.doctor.facts import Facts
from multikueued.reports.doctor.findings import Spot
from multikueued.reports.doctor.webhooks import is_gone, service_of, stale


@attrs.frozen
class Fix:
    """One change, of the one object that was seen."""

    told: str
    """What is done, in words."""
    resource: Resource
    key: ObjectKey
    uid: str
    """The object's: if it was made again, nothing is done."""
    version: str
    """The resourceVersion that was read: if it has changed, nothing is done."""
    patch: Json | None = None
    """A merge patch; None: the object is deleted."""


def fixes(facts: Facts) -> tuple[Fix, ...]:
    """All that may be done without knowing more than was read."""
    return (*_webhooks(facts), *_annotations(facts))


def _webhooks(facts: Facts) -> Iterator[Fix]:
    """Registrations of ours that nobody keeps: their Service is gone as well, so it is not another daemon's.

    One that others share is theirs, too.
    """
    known = facts.webhooks.configurations if facts.webhooks is not None else {}
    for name, ours in stale(facts).items():
        entries = known[name].get("webhooks") or []
        if is_gone(facts, service_of(ours)) and all(entry.get("name") == WEBHOOK for entry in entries):
            told = f"delete MutatingWebhookConfiguration {name}"
            yield Fix(told, MUTATING_WEBHOOKS, ObjectKey("", name), uid(known[name]), resource_version(known[name]))


def unreadable_annotations(facts: Facts) -> Iterator[Spot]:
    """Annotations of ours that users write, and that nobody can read."""
    for workload in _misdated(facts):
        key, noted = ObjectKey.of(workload), annotations_of(workload)[RETRY_ANNOTATION]
        yield Spot(f"Workload {key}", f"its annotation {RETRY_ANNOTATION} is {noted!r}, which is no time (RFC 3339)")


def _misdated(facts: Facts) -> list[Json]:
    noted = ((one, annotations_of(one).get(RETRY_ANNOTATION)) for one in facts.objects.workloads)
    return [one for one, text in noted if text is not None and parse_timestamp(text) is None]


def _annotations(facts: Facts) -> Iterator[Fix]:
    for workload in _misdated(facts):
        key = ObjectKey.of(workload)
        seen = uid(workload), resource_version(workload)
        metadata: Json = {"uid": seen[0], "resourceVersion": seen[1], "annotations": {RETRY_ANNOTATION: None}}
        told = f"take annotation {RETRY_ANNOTATION} off Workload {key}"
        yield Fix(told, WORKLOAD, key, *seen, {"metadata": metadata})
