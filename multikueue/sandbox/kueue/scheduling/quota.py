"""Quota of one ClusterQueue: flavors in their order, what is used of them, and whether a request fits.

What it may borrow from others is in `cohorts`. Amounts are thousandths (`quantities`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TypeAlias

import attrs

from multikueue.core.model.flavors import Flavor, Pods
from multikueue.core.model.flavors import flavors as readable
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig
from multikueue.core.model.quantities import thousandths, written
from multikueue.sandbox.kueue.scheduling.podsets import PodSetRequest

FlavorResource: TypeAlias = tuple[str, str]
"""Flavor name and resource name."""
Usage: TypeAlias = Mapping[FlavorResource, int]


@attrs.frozen
class ResourceGroup:
    """Resources that get the same flavor, and the flavors with their quota, first choice first."""

    covered: frozenset[str]
    flavors: tuple[tuple[str, Mapping[str, int]], ...]
    known: Mapping[str, Flavor] = attrs.field(factory=dict)
    """What decides which pods may use them."""

    def excludes(self, flavor: str, pods: Pods | None) -> str:
        """Why such pods may not use a flavor, in Kueue's words; empty: they may."""
        definition, keys = self.known.get(flavor), {key for other in self.known.values() for key, _ in other.labels}
        if definition is None or pods is None or definition.takes(pods, keys):
            return ""
        taint = definition.untolerated(pods)
        if taint is None:
            return f"flavor {flavor} doesn't match node affinity"
        return f"untolerated taint {{{taint.key} {taint.value} {taint.effect} <nil>}} in flavor {flavor}"


@attrs.frozen
class Quota:
    """The nominal quota of a ClusterQueue."""

    groups: tuple[ResourceGroup, ...]

    @classmethod
    def of(cls, cluster_queue: Json, flavors: Iterable[Json] = ()) -> Quota:
        """Read a ClusterQueue, and its ResourceFlavors where it matters who may use them."""
        known = readable(flavors)
        return cls(tuple(_group(group, known) for group in dig(cluster_queue, "spec", "resourceGroups") or []))

    def nominal(self) -> dict[FlavorResource, int]:
        """All quota there is."""
        return {
            (flavor, resource): amount
            for group in self.groups
            for flavor, amounts in group.flavors
            for resource, amount in amounts.items()
        }

    def within(self, capacity: Mapping[FlavorResource, int]) -> Quota:
        """With other amounts: what it may use with all that others lend."""
        groups = (
            attrs.evolve(
                group,
                flavors=tuple(
                    (flavor, {name: capacity[flavor, name] for name in amounts}) for flavor, amounts in group.flavors
                ),
            )
            for group in self.groups
        )
        return Quota(tuple(groups))


@attrs.frozen
class Assignment:
    """Flavors for every pod set, and what they use in all."""

    pod_sets: tuple[Json, ...]
    """As in `status.admission.podSetAssignments`."""
    usage: Usage


@attrs.frozen
class NoFit:
    """Why there is no place; Kueue's words."""

    message: str


def assign(quota: Quota, usage: Usage, requests: Iterable[PodSetRequest]) -> Assignment | NoFit:
    """The first flavors that have room for all pod sets together, if there are any."""
    taken = Counter(usage)
    pod_sets: list[Json] = []
    for request in requests:
        flavors = _assign_pod_set(quota, taken, request)
        if isinstance(flavors, NoFit):
            return flavors
        taken.update({(flavor, resource): dict(request.amounts)[resource] for resource, flavor in flavors.items()})
        pod_sets.append(_assignment(request, flavors))
    own = Counter(taken)
    own.subtract(Counter(usage))
    return Assignment(tuple(pod_sets), {place: amount for place, amount in own.items() if amount})


def used_by(workload: Json) -> dict[FlavorResource, int]:
    """What the admission of a Workload takes from the quota."""
    total: Counter[FlavorResource] = Counter()
    for entry in dig(workload, "status", "admission", "podSetAssignments") or []:
        amounts = entry.get("resourceUsage") or {}
        for resource, flavor in (entry.get("flavors") or {}).items():
            total[flavor, resource] += thousandths(amounts.get(resource, 0))
    return dict(total)


def _group(group: Json, known: Mapping[str, Flavor]) -> ResourceGroup:
    flavors = tuple(
        (flavor["name"], {entry["name"]: thousandths(entry["nominalQuota"]) for entry in flavor["resources"]})
        for flavor in group["flavors"]
    )
    own = {name: known[name] for name, _ in flavors if name in known}
    return ResourceGroup(frozenset(group["coveredResources"]), flavors, own)


def _assign_pod_set(quota: Quota, usage: Usage, request: PodSetRequest) -> dict[str, str] | NoFit:
    covered = frozenset[str]().union(*(group.covered for group in quota.groups))
    missing = [name for name, amount in request.amounts if amount and name not in covered and name != "pods"]
    if missing:
        return _no_fit(request, [f"resource {missing[0]} unavailable in ClusterQueue"])
    result: dict[str, str] = {}
    for group in quota.groups:
        wanted = {name: amount for name, amount in request.amounts if name in group.covered}
        if not wanted:
            continue
        reasons: list[str] = []
        for flavor, amounts in group.flavors:
            excluded = group.excludes(flavor, request.pods)
            problems = [excluded] if excluded else list(_problems(flavor, amounts, usage, wanted))
            if not problems:
                result.update(dict.fromkeys(wanted, flavor))
                break
            reasons += problems
        else:
            return _no_fit(request, reasons)
    return result


def _problems(flavor: str, amounts: Mapping[str, int], usage: Usage, wanted: Mapping[str, int]) -> Iterable[str]:
    for resource, amount in wanted.items():
        nominal, used = amounts.get(resource, 0), usage.get((flavor, resource), 0)
        if amount > nominal:
            yield (
                f"insufficient quota for {resource} in flavor {flavor}, previously considered podsets requests (0) + "
                f"current podset request ({written(resource, amount)}) > maximum capacity "
                f"({written(resource, nominal)})"
            )
        elif amount > nominal - used:
            more = written(resource, amount - max(0, nominal - used))
            yield f"insufficient unused quota for {resource} in flavor {flavor}, {more} more needed"


def _no_fit(request: PodSetRequest, reasons: list[str]) -> NoFit:
    return NoFit(f"couldn't assign flavors to pod set {request.name}: {', '.join(reasons)}")


def _assignment(request: PodSetRequest, flavors: dict[str, str]) -> Json:
    amounts = dict(request.amounts)
    result: Json = {"name": request.name, "count": request.count}
    if flavors:
        result["flavors"] = flavors
        result["resourceUsage"] = {resource: written(resource, amounts[resource]) for resource in flavors}
    return result
