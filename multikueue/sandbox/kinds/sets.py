"""Sets of pods that serve: Deployment, StatefulSet and LeaderWorkerSet. Their pods wait behind Kueue's gate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final

import attrs

from multikueue.core.model.conditions import conditions, find, new_condition, updated
from multikueue.core.model.labels import QUEUE_LABEL
from multikueue.core.model.names import GVK, Json, Resource
from multikueue.core.model.objects import clone, dig, labels_of, uid
from multikueue.sandbox.kinds.course import Ending, Moment, Run, Turn
from multikueue.sandbox.kinds.kind import SandboxKind
from multikueue.sandbox.kinds.pods import gate
from multikueue.sandbox.kinds.roles import PodSets, pod_set

PARENT_ANNOTATION: Final = "kueue.x-k8s.io/pod-suspending-parent"
"""On a pod: which kind of set decides when it starts."""
LWS_NAME: Final = "leaderworkerset.sigs.k8s.io/name"
LWS_GROUP: Final = "leaderworkerset.sigs.k8s.io/group-index"
LWS_WORKER: Final = "leaderworkerset.sigs.k8s.io/worker-index"
_APP: Final = "app"
_WORDS: Final = {
    "Progressing": ("GroupsProgressing", "Replicas are progressing"),
    "Available": ("AllGroupsReady", "All replicas are ready"),
}
"""Reason and message of a LeaderWorkerSet's conditions."""


@attrs.frozen(kw_only=True)
class Member:
    """One pod that a set should have."""

    name: str
    role: str = "main"
    """The pod set it is counted in."""
    component: str = ""
    """The part of the set that is admitted as one; empty if the set is."""
    template: Json
    labels: Mapping[str, str] = attrs.field(factory=dict)


MembersRule = Callable[[Json], list[Member]]


@attrs.frozen
class MemberPods(PodSets):
    """Reads the pods of a set; Kueue does not change their templates, but the pods."""

    members: MembersRule
    templates: Callable[[Json], Sequence[Json]]
    """The very parts of the set that hold a pod template each."""

    def read(self, job: Json) -> list[Json]:
        """See `PodSets`."""
        return pod_sets(self.members(job))

    def is_started(self, job: Json) -> bool:
        """See `PodSets`."""
        del job
        return True

    def fill(self, job: Json, template: Json) -> None:
        """See `PodSets`."""
        for holder in self.templates(job):
            filled = clone(template)
            filled["spec"]["restartPolicy"] = "Always"
            labels = {**labels_of(filled), _APP: job["metadata"]["name"]}
            holder.update({**filled, "metadata": {**(filled.get("metadata") or {}), "labels": labels}})


class SetCourse:
    """A set serves as long as it is there. Implements `Course`."""

    ends = False

    def turn(self, job: Json, run: Run | None, moment: Moment) -> Turn:
        """See `Course`. The set's own controller writes its status."""
        del job, run, moment
        return Turn()

    def ending(self, job: Json) -> Ending | None:
        """See `Course`."""
        del job
        return None

    def is_active(self, job: Json) -> bool:
        """See `Course`."""
        return (dig(job, "status", "readyReplicas") or 0) > 0

    def pods_ready(self, job: Json) -> bool:
        """See `Course`."""
        return (dig(job, "status", "readyReplicas") or 0) >= replicas(job) > 0


@attrs.frozen(kw_only=True, eq=False)
class SetKind(SandboxKind):
    """A row for a set of pods."""

    members: MembersRule
    parent: str = ""
    """What the annotation of its pods calls it."""
    apart: bool = False
    """Whether each of its pods is admitted on its own."""
    whole: bool = False
    """Whether it counts components, not pods."""

    def is_held(self, job: Json) -> bool:
        """See `SandboxKind`. A set is never held, its pods are."""
        del job
        return False

    def with_suspend(self, job: Json, suspended: bool) -> Json:
        """See `SandboxKind`: as Kueue's webhooks make the pods of a new set."""
        made: Json = clone(job)
        assert isinstance(self.pods, MemberPods)
        for template in self.pods.templates(made) if suspended else ():
            metadata = template.setdefault("metadata", {})
            gate(metadata, template.setdefault("spec", {}))
            metadata.setdefault("annotations", {})[PARENT_ANNOTATION] = self.parent
            if self.apart:
                metadata["labels"][QUEUE_LABEL] = labels_of(made).get(QUEUE_LABEL) or ""
        return made

    def example(self, name: str, template: Json, *, queue: str, delegated: bool = True) -> Json:
        """See `SandboxKind`."""
        made = super().example(name, template, queue=queue, delegated=delegated)
        if self.resource.gvk.group == "apps":
            made["spec"]["selector"] = {"matchLabels": {_APP: name}}
        return made

    def status(self, job: Json, ready: frozenset[str], now: datetime) -> Json:
        """The status of a set of whose pods these are ready."""
        members = self.members(job)
        waiting = {member.component for member in members if member.name not in ready}
        units = {member.component for member in members} if self.whole else {member.name for member in members}
        count = len(units - waiting) if self.whole else len(units & ready)
        counted = {"replicas": len(units), "readyReplicas": count, "updatedReplicas": len(units)}
        if self.resource.gvk.group == "apps":
            counted["availableReplicas"] = count
        generation = dig(job, "metadata", "generation") or 1
        status = {**(job.get("status") or {}), **counted, "observedGeneration": generation}
        return _with_conditions(job, status, now) if self.whole else status


def _with_conditions(job: Json, status: Json, now: datetime) -> Json:
    """The status of a LeaderWorkerSet as its manager writes it: without zeros, one condition at a time `True`."""
    name, listed = job["metadata"]["name"], conditions(job)
    shown = "Available" if status["readyReplicas"] >= status["replicas"] else "Progressing"
    for kind, (reason, message) in _WORDS.items():
        if kind == shown or find(listed, kind):
            made = new_condition(kind, kind == shown, reason, message, now=now, generation=status["observedGeneration"])
            listed = updated(listed, made)
    selector = f"{LWS_NAME}={name},{LWS_WORKER}=0"
    return {**{key: value for key, value in status.items() if value}, "hpaPodSelector": selector, "conditions": listed}


def replicas(job: Json) -> int:
    """How many a set should have."""
    wanted = dig(job, "spec", "replicas")
    return wanted if isinstance(wanted, int) else 1


def pod_sets(members: Sequence[Member]) -> list[Json]:
    """The pod sets of a Workload for these pods."""
    roles: dict[str, list[Member]] = {}
    for member in members:
        roles.setdefault(member.role, []).append(member)
    return [
        pod_set(role, len(members_of_role), clone(members_of_role[0].template))
        for role, members_of_role in roles.items()
    ]


def _numbered(job: Json) -> list[Member]:
    template = dig(job, "spec", "template") or {}
    return [Member(name=f"{job['metadata']['name']}-{number}", template=template) for number in range(replicas(job))]


def _deployed(job: Json) -> list[Member]:
    """Their names tell apart the pods of two Deployments of one name, which may be on a worker for a moment."""
    part = f"-{uid(job)[:5]}" if uid(job) else ""
    named = [f"{job['metadata']['name']}{part}-{number}" for number in range(replicas(job))]
    return [Member(name=name, template=dig(job, "spec", "template") or {}) for name in named]


def _led(job: Json) -> list[Member]:
    shape = dig(job, "spec", "leaderWorkerTemplate") or {}
    size = shape.get("size") or 1
    name, worker = job["metadata"]["name"], shape.get("workerTemplate") or {}
    made = []
    for group in range(replicas(job)):
        for number in range(size):
            made.append(
                Member(
                    name=f"{name}-{group}-{number}" if number else f"{name}-{group}",
                    role="worker" if number else "leader",
                    component=str(group),
                    template=worker if number else shape.get("leaderTemplate") or worker,
                    labels={LWS_NAME: name, LWS_GROUP: str(group), LWS_WORKER: str(number)},
                )
            )
    return made


def _plain(job: Json) -> Sequence[Json]:
    template: Json = job["spec"].setdefault("template", {})
    return [template]


def _leader_and_workers(job: Json) -> Sequence[Json]:
    shape = job["spec"].setdefault("leaderWorkerTemplate", {})
    templates: list[Json] = [shape.setdefault("workerTemplate", {})]
    return [*templates, shape["leaderTemplate"]] if "leaderTemplate" in shape else templates


DEPLOYMENT: Final = SetKind(
    resource=Resource(GVK("apps", "v1", "Deployment"), "deployments"),
    integration="deployment",
    managed_by=None,
    pods=MemberPods(_deployed, _plain),
    course=SetCourse(),
    gated=True,
    members=_deployed,
    parent="deployment",
    apart=True,
    spec={"replicas": 2},
)
STATEFUL_SET: Final = SetKind(
    resource=Resource(GVK("apps", "v1", "StatefulSet"), "statefulsets"),
    integration="statefulset",
    managed_by=None,
    pods=MemberPods(_numbered, _plain),
    course=SetCourse(),
    gated=True,
    reports=False,
    members=_numbered,
    parent="statefulset",
    spec={"replicas": 2, "serviceName": "", "podManagementPolicy": "Parallel"},
)
LEADER_WORKER_SET: Final = SetKind(
    resource=Resource(GVK("leaderworkerset.x-k8s.io", "v1", "LeaderWorkerSet"), "leaderworkersets"),
    integration="leaderworkerset.x-k8s.io/leaderworkerset",
    managed_by=None,
    pods=MemberPods(_led, _leader_and_workers),
    course=SetCourse(),
    gated=True,
    reports=False,
    members=_led,
    parent="leaderworkerset",
    whole=True,
    spec={"replicas": 2, "leaderWorkerTemplate": {"size": 2}},
    columns=(("Ready", ".status.readyReplicas"), ("Desired", ".spec.replicas")),
    short_names=("lws",),
)
KINDS: Final = (DEPLOYMENT, STATEFUL_SET, LEADER_WORKER_SET)
