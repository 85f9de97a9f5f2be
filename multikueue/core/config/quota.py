"""Manager quota automation: a ClusterQueue's quota as the sum of what the workers have for it.

Kueue's KEP-9988, with one difference: a worker that cannot be reached keeps the quota it last had. Kueue leaves it out,
so a lost connection of a minute would evict what runs on the manager's quota.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Final

import attrs

from multikueue.core.config.admission_check import clusters
from multikueue.core.model.conditions import condition, conditions, new_condition, says_the_same, updated
from multikueue.core.model.names import Json, ObjectKey
from multikueue.core.model.objects import dig
from multikueue.core.model.quantities import MILLI, MOST_COUNTED, Quantity
from multikueue.core.model.second_names import second_name

CONDITION: Final = "MultiKueueManagerQuotaAutomation"
"""The condition on the manager's ClusterQueue that tells what became of it."""

Amounts = Mapping[str, Quantity]
"""By resource."""

_NOTHING: Final = Quantity(0)


@attrs.frozen
class WorkerQueues:
    """What is known of one worker's queues."""

    local_queues: Iterable[tuple[ObjectKey, str]]
    """Each with the name of its ClusterQueue."""
    cluster_queues: Mapping[str, Json]


@attrs.frozen
class Automation:
    """What to write on a ClusterQueue."""

    resource_groups: list[Json] | None = None
    """The new `spec.resourceGroups`; None if they are right."""
    conditions: list[Json] | None = None
    """The new `status.conditions`; None if they are right."""


def wants_automation(config: Json | None) -> bool:
    """Whether a MultiKueueConfig asks for it."""
    return config is not None and dig(config, "spec", "quotaManagement") == "Automated"


def cohort_of(cluster_queue: Json) -> str:
    """The cohort of a ClusterQueue; empty: it has none. The older versions of the API call the field `cohort`."""
    return str(dig(cluster_queue, "spec", "cohortName") or dig(cluster_queue, "spec", "cohort") or "")


def parent_of(cohort: Json) -> str:
    """The Cohort above a Cohort; empty: there is none. Older versions call the field `parent`."""
    return str(dig(cohort, "spec", "parentName") or dig(cohort, "spec", "parent") or "")


def check_names(cluster_queue: Json) -> list[str]:
    """The AdmissionChecks of a ClusterQueue, in its order."""
    listed = dig(cluster_queue, "spec", "admissionChecksStrategy", "admissionChecks") or []
    return [str(entry.get("name")) for entry in listed]


def offered(local_queues: frozenset[ObjectKey], worker: WorkerQueues) -> Amounts:
    """What a worker has for the LocalQueues of one ClusterQueue: all quota of the ClusterQueues theirs lead to there.

    Args:
        local_queues: the manager's.
        worker: its queues; LocalQueues belong together by namespace and name.
    """
    related = {target for key, target in worker.local_queues if key in local_queues}
    queues = (worker.cluster_queues[name] for name in sorted(related & worker.cluster_queues.keys()))
    return _sum({resource: amount} for queue in queues for resource, amount in _nominal(queue))


def automate(
    cluster_queue: Json, check: str | None, config: Json | None, workers: Sequence[Amounts | None], now: datetime
) -> Automation:
    """What a ClusterQueue of the manager should say.

    Args:
        cluster_queue: as it is.
        check: the first of its checks that is ours; None if none is.
        config: the MultiKueueConfig behind the check, if there is one.
        workers: what each of the config's workers offers; None: not known, but it may come back, so that until it is
            known no quota is taken away.
        now: the manager's wall clock.
    """
    if check is None:
        kept = [entry for entry in conditions(cluster_queue) if entry.get("type") != CONDITION]
        return Automation(conditions=kept if len(kept) < len(conditions(cluster_queue)) else None)
    problem = _problem(cluster_queue, config)
    if problem is not None:
        return _stating(cluster_queue, False, *problem, now)
    group = dig(cluster_queue, "spec", "resourceGroups")[0]
    total = _sum(worker or {} for worker in workers)
    uncovered = sorted(total.keys() - set(group["coveredResources"]))
    if uncovered:
        missing = f"manager-side coveredResources is missing resources configured on workers: [{' '.join(uncovered)}]"
        return _stating(cluster_queue, False, "UnsupportedConfiguration", missing, now)
    if any(worker is None for worker in workers):
        for resource, amount in _nominal(cluster_queue):
            total[resource] = max(amount, total.get(resource, _NOTHING), key=lambda quantity: quantity.thousandths)
    message = "ClusterQueue quota is automatically managed based on MultiKueue workers."
    automation = _stating(cluster_queue, True, "QuotaAutomated", message, now)
    return attrs.evolve(automation, resource_groups=_changed(group, total))


def _problem(cluster_queue: Json, config: Json | None) -> tuple[str, str] | None:
    """Reason and message, if the quota cannot or should not be automated."""
    if config is None:
        return "UnsupportedConfiguration", "The referenced MultiKueueConfig was not found."
    if not wants_automation(config):
        return "NotRequested", "MultiKueue manager quota automation has not been requested."
    groups = dig(cluster_queue, "spec", "resourceGroups") or []
    if len(groups) != 1 or len(groups[0].get("flavors") or []) != 1:
        message = "Quota automation requires that the manager-side ClusterQueue has exactly one ResourceFlavor"
        return "UnsupportedConfiguration", message
    return None


def _stating(cluster_queue: Json, status: bool, reason: str, message: str, now: datetime) -> Automation:
    generation = dig(cluster_queue, "metadata", "generation")
    wanted = new_condition(CONDITION, status, reason, message, now=now, generation=generation)
    if says_the_same(condition(cluster_queue, CONDITION), wanted):
        return Automation()
    return Automation(conditions=updated(conditions(cluster_queue), wanted))


def _changed(group: Json, total: Amounts) -> list[Json] | None:
    """The group with these amounts for its only flavor; None if it says so already."""
    flavor = group["flavors"][0]
    covered = group["coveredResources"]
    wanted = {name: _counted(name, total.get(name, _NOTHING)) for name in covered}
    present = [(entry["name"], Quantity.parse(entry["nominalQuota"]).thousandths) for entry in flavor["resources"]]
    plain = all(set(entry) == {"name", "nominalQuota"} for entry in flavor["resources"])
    if plain and present == [(name, amount.thousandths) for name, amount in wanted.items()]:
        return None
    resources = [{"name": name, "nominalQuota": str(amount)} for name, amount in wanted.items()]
    return [{**group, "flavors": [{**flavor, "resources": resources}]}]


def _counted(resource: str, amount: Quantity) -> Quantity:
    """No more than Kueue counts: what is beyond 999E Kubernetes writes without its suffix, `1000E` as `1`."""
    most = MOST_COUNTED if resource == "cpu" else MOST_COUNTED * MILLI
    return attrs.evolve(amount, thousandths=min(amount.thousandths, most))


def _sum(parts: Iterable[Amounts]) -> dict[str, Quantity]:
    total: dict[str, Quantity] = {}
    for part in parts:
        for resource, amount in part.items():
            total[resource] = total.get(resource, _NOTHING) + amount
    return total


def _nominal(cluster_queue: Json) -> Iterable[tuple[str, Quantity]]:
    for group in dig(cluster_queue, "spec", "resourceGroups") or []:
        for flavor in group.get("flavors") or []:
            for entry in flavor.get("resources") or []:
                yield entry["name"], Quantity.parse(entry.get("nominalQuota") or 0)


def listed_workers(config: Json | None, objects: Mapping[str, Json] = MappingProxyType({})) -> list[str]:
    """The workers whose queues matter: those of a config that asks for automation, each cluster by one of its names.

    Args:
        config: the MultiKueueConfig.
        objects: the MultiKueueClusters by name; they say which is a second name of another's cluster.
    """
    listed = clusters(config) if config is not None and wants_automation(config) else []
    of_cluster: dict[str, str] = {}
    for name in listed:
        second = second_name(objects.get(name) or {})
        if second is None:
            of_cluster[name] = name
        else:
            of_cluster.setdefault(second.first, name)
    return [*of_cluster.values()]
