"""What `multikueue doctor --fix` would do: only to our own webhook's registration, and to annotations of ours.

Gates, RBAC, quotas, queues, configs and jobs are their owners' to change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import attrs

from multikueue.core.admission.registration import WEBHOOK
from multikueue.core.model.kinds import MUTATING_WEBHOOKS, WORKLOAD
from multikueue.core.model.labels import RETRY_ANNOTATION
from multikueue.core.model.names import Json, ObjectKey, Resource
from multikueue.core.model.objects import resource_version, uid
from multikueue.errors import ApiError, Conflict, NotFound
from multikueued.clusters import ClusterClient
from multikueued.diagnosis.checks.jobs import misdated
from multikueued.diagnosis.checks.webhooks import is_gone, service_of, stale
from multikueued.diagnosis.facts import Facts
from multikueued.workers.places import tell


@attrs.frozen
class Fix:
    """One change, of the one object that was seen."""

    what: str
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
            what = f"delete MutatingWebhookConfiguration {name}"
            yield Fix(what, MUTATING_WEBHOOKS, ObjectKey("", name), uid(known[name]), resource_version(known[name]))


def _annotations(facts: Facts) -> Iterator[Fix]:
    for workload in misdated(facts):
        key = ObjectKey.of(workload)
        seen = uid(workload), resource_version(workload)
        metadata: Json = {"uid": seen[0], "resourceVersion": seen[1], "annotations": {RETRY_ANNOTATION: None}}
        what = f"take annotation {RETRY_ANNOTATION} off Workload {key}"
        yield Fix(what, WORKLOAD, key, *seen, {"metadata": metadata})


async def mend(client: ClusterClient, wanted: Sequence[Fix], agreed: Callable[[str], bool]) -> int:
    """Show what would be done, ask, and do it; returns how many changes were made.

    Args:
        client: of the manager.
        wanted: the changes.
        agreed: asks a question.
    """
    if not wanted:
        tell("Nothing that --fix may change: gates, RBAC, quotas, queues and configs are yours.")
        return 0
    for fix in wanted:
        tell(f"would {fix.what}")
    if not agreed(f"Do {'this' if len(wanted) == 1 else f'these {len(wanted)}'}?"):
        return 0
    return sum([await _done(client, fix) for fix in wanted])


async def _done(client: ClusterClient, fix: Fix) -> bool:
    """Make one change; what cannot be made is told, and the others go on."""
    try:
        if fix.patch is None:
            await client.delete(fix.resource, fix.key, uid=fix.uid, resource_version=fix.version)
        else:
            await client.merge_patch(fix.resource, fix.key, fix.patch)
    except (NotFound, Conflict):
        tell(f"not done, it was changed or deleted meanwhile: {fix.what}")
        return False
    except ApiError as error:
        tell(f"not done: {fix.what}: {error}")
        return False
    tell(f"done: {fix.what}")
    return True
