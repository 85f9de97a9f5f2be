"""Pod sets: what a job asks for, and what its admission puts into its pod templates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import add
from typing import Final

import attrs

from multikueue.core.model.flavors import Pods
from multikueue.core.model.labels import ORIGIN_LABEL
from multikueue.core.model.names import Json
from multikueue.core.model.objects import dig, labels_of
from multikueue.core.model.quantities import MILLI, thousandths
from multikueue.core.model.workloads import is_elastic
from multikueue.sandbox.kinds.injecting import WORKLOAD_ANNOTATION, Injection, TemplateConflictError, merge_into

PODSET_LABEL: Final = "kueue.x-k8s.io/podset"
LOCAL_QUEUE_LABEL: Final = "kueue.x-k8s.io/local-queue-name"
CLUSTER_QUEUE_LABEL: Final = "kueue.x-k8s.io/cluster-queue-name"
WORKER_POD_LABEL: Final = "kueue.x-k8s.io/multikueue-worker-workload-pod"


@attrs.frozen
class PodSetRequest:
    """What one pod set asks for, in thousandths, over all its pods."""

    name: str
    count: int
    amounts: tuple[tuple[str, int], ...]
    pods: Pods | None = None
    """What they demand of nodes."""
    spare: int = 0
    """How many of its pods there need not be."""

    def without(self, pods: int) -> PodSetRequest:
        """With fewer pods."""
        left = self.count - pods
        amounts = tuple((resource, amount * left // self.count) for resource, amount in self.amounts)
        return attrs.evolve(self, count=left, amounts=amounts, spare=self.spare - pods)


def request(pod_set: Json) -> PodSetRequest:
    """Read a pod set's request; `pods` is always part of it."""
    count = int(pod_set.get("count", 1))
    spec = dig(pod_set, "template", "spec") or {}
    per_pod = {**_pod_amounts(spec), "pods": MILLI}
    amounts = tuple(sorted((resource, amount * count) for resource, amount in per_pod.items()))
    spare = max(0, count - int(pod_set.get("minCount") or count))
    return PodSetRequest(pod_set.get("name") or "main", count, amounts, Pods.of(spec), spare)


def fewer_pods(requests: Sequence[PodSetRequest], steps: int) -> list[PodSetRequest]:
    """The requests with so many pods less than they ask for, each with its part of them."""
    spare = sum(request.spare for request in requests)
    return [request.without(request.spare * steps // spare) if request.spare else request for request in requests]


def as_admitted(workload: Json) -> list[Json]:
    """The pod sets as they run: of those that may have fewer pods, with as many as have quota."""
    assigned = dig(workload, "status", "admission", "podSetAssignments") or []
    counts = {entry.get("name"): entry.get("count") for entry in assigned}
    return [
        {**pod_set, "count": counts.get(pod_set.get("name")) or pod_set.get("count")}
        if "minCount" in pod_set
        else pod_set
        for pod_set in dig(workload, "spec", "podSets") or []
    ]


def equivalent(job_sets: list[Json], workload_sets: list[Json], *, tolerations: bool) -> bool:
    """Whether the job still is what its Workload says: names are not compared, nor what does not touch quota.

    Args:
        tolerations: compare them too, which Kueue does until the Workload is admitted.
    """
    if len(job_sets) != len(workload_sets):
        return False
    return all(_same(wanted, had, tolerations) for wanted, had in zip(job_sets, workload_sets, strict=True))


def injections(workload: Json, flavors: Mapping[str, Json]) -> dict[str, Injection]:
    """What an admitted Workload puts into the templates of its job, by pod set name.

    Raises:
        TemplateConflictError: two admission checks, or a check and a flavor, want different values.
    """
    assigned = dig(workload, "status", "admission") or {}
    result = {}
    for assignment in assigned.get("podSetAssignments") or []:
        injection = _from_assignment(workload, assigned.get("clusterQueue", ""), assignment, flavors)
        for check in dig(workload, "status", "admissionChecks") or []:
            for update in check.get("podSetUpdates") or []:
                if update.get("name") == assignment["name"]:
                    injection = _with_update(injection, check["name"], update)
        result[assignment["name"]] = injection
    return result


def _same(job_set: Json, workload_set: Json, tolerations: bool) -> bool:
    if any(job_set.get(field) != workload_set.get(field) for field in ("count", "minCount")):
        return False
    fields = ("containers", "initContainers", *(("tolerations",) if tolerations else ()))
    return all(
        (dig(job_set, "template", "spec", field) or []) == (dig(workload_set, "template", "spec", field) or [])
        for field in fields
    )


def _pod_amounts(spec: Json) -> dict[str, int]:
    """The effective request of one pod: running containers and sidecars together, or an init container that is greater
    with the sidecars before it; what is said of the whole pod goes before."""
    running: dict[str, int] = {}
    most: dict[str, int] = {}
    for container in spec.get("initContainers") or []:
        beside = _merged(add, running, _container_amounts(container))
        most = _merged(max, most, beside)
        if container.get("restartPolicy") == "Always":
            running = beside
    for container in spec.get("containers") or []:
        running = _merged(add, running, _container_amounts(container))
    whole = spec.get("resources") or {}
    most = _merged(max, most, running)
    total = {**_amounts(whole.get("limits") or {}), **most, **_amounts(whole.get("requests") or {})}
    return _merged(add, total, _amounts(spec.get("overhead") or {}))


def _merged(how: Callable[[int, int], int], one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {resource: how(one.get(resource, 0), other.get(resource, 0)) for resource in {**one, **other}}


def _container_amounts(container: Json) -> dict[str, int]:
    """Requests; a limit counts where no request is given, as the API server would default it."""
    resources = container.get("resources") or {}
    asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return _amounts(asked)


def _amounts(quantities: Json) -> dict[str, int]:
    """Quantities by resource; one that cannot be read becomes a resource no queue has, so that its user is told."""
    result = {}
    for resource, quantity in quantities.items():
        try:
            result[resource] = thousandths(quantity)
        except ValueError:
            result[f"{resource}={quantity}"] = MILLI
    return result


def _from_assignment(workload: Json, queue: str, assignment: Json, flavors: Mapping[str, Json]) -> Injection:
    labels = {
        PODSET_LABEL: assignment["name"],
        LOCAL_QUEUE_LABEL: dig(workload, "spec", "queueName") or "",
        CLUSTER_QUEUE_LABEL: queue,
    }
    if ORIGIN_LABEL in labels_of(workload):
        labels[WORKER_POD_LABEL] = "true"
    selector: Json = {}
    tolerations: list[Json] = []
    for name in dict.fromkeys((assignment.get("flavors") or {}).values()):
        flavor = flavors.get(name) or {}
        selector.update(dig(flavor, "spec", "nodeLabels") or {})
        tolerations.extend(dig(flavor, "spec", "tolerations") or [])
    return Injection(
        labels=labels,
        annotations={WORKLOAD_ANNOTATION: workload["metadata"]["name"]},
        node_selector=selector,
        tolerations=tuple(tolerations),
        count=assignment.get("count"),
        of_elastic=is_elastic(workload),
    )


def _with_update(injection: Injection, check: str, update: Json) -> Injection:
    holder: Json = {
        "labels": dict(injection.labels),
        "annotations": dict(injection.annotations),
        "nodeSelector": dict(injection.node_selector),
    }
    try:
        for field in holder:
            merge_into(holder, field, update.get(field) or {})
    except TemplateConflictError as conflict:
        raise TemplateConflictError(f'in admission check "{check}": {conflict}') from conflict
    return attrs.evolve(
        injection,
        labels=holder["labels"],
        annotations=holder["annotations"],
        node_selector=holder["nodeSelector"],
        tolerations=(*injection.tolerations, *(update.get("tolerations") or [])),
    )
