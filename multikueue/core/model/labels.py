"""Labels, annotations, finalizers and field managers shared with Kueue.

They are Kueue's contract: its webhooks, controllers and tools look for exactly these. What is ours alone
starts with `multikueue.dev/`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

CONTROLLER_NAME: Final = "kueue.x-k8s.io/multikueue"
"""Default `controllerName` of our AdmissionChecks, and what a delegated job's `managedBy` says."""

ORIGIN_LABEL: Final = "kueue.x-k8s.io/multikueue-origin"
ORIGIN_UID_ANNOTATION: Final = "kueue.x-k8s.io/multikueue-origin-uid"
PREBUILT_WORKLOAD: Final = "kueue.x-k8s.io/prebuilt-workload-name"
"""On a job copy, as a label and as an annotation: the Workload that carries it."""
JOB_UID_LABEL: Final = "kueue.x-k8s.io/job-uid"
"""Not copied: a worker's Kueue would finish a copy whose owner it cannot find."""
QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
PRIORITY_CLASS_LABEL: Final = "kueue.x-k8s.io/priority-class"
"""On a job: the name of its WorkloadPriorityClass."""

JOB_OWNER_GVK_ANNOTATION: Final = "kueue.x-k8s.io/job-owner-gvk"
JOB_OWNER_NAME_ANNOTATION: Final = "kueue.x-k8s.io/job-owner-name"
COMPONENT_INDEX_ANNOTATION: Final = "kueue.x-k8s.io/component-workload-index"
STOPPING_ANNOTATION: Final = "kueue.x-k8s.io/stopping"
ELASTIC_ANNOTATION: Final = "kueue.x-k8s.io/elastic-job"
SLICE_REPLACEMENT_ANNOTATION: Final = "kueue.x-k8s.io/workload-slice-replacement-for"
RAY_CLUSTER_GENERATION_ANNOTATION: Final = "kueue.x-k8s.io/raycluster-generation"
"""On a Ray job whose cluster scales by itself: it tells its slices apart, beside the job's own generation."""
GROUP_WORKLOAD_ANNOTATION: Final = "kueue.x-k8s.io/is-group-workload"
"""On a Workload: the pods of a group stand behind it."""

MANAGED_LABEL: Final = "kueue.x-k8s.io/managed"
"""On every pod that Kueue manages: `true`."""
POD_GROUP_NAME: Final = "kueue.x-k8s.io/pod-group-name"
"""On a pod, as a label or an annotation: its group, which is also the name of the group's Workload."""
POD_GROUP_TOTAL_ANNOTATION: Final = "kueue.x-k8s.io/pod-group-total-count"
POD_GROUP_SERVING_ANNOTATION: Final = "kueue.x-k8s.io/pod-group-serving"
MIN_PARALLELISM_ANNOTATION: Final = "kueue.x-k8s.io/job-min-parallelism"
"""On a Job that Kueue may start with fewer pods: with how many at least."""
SAME_COMPLETIONS_ANNOTATION: Final = "kueue.x-k8s.io/job-completions-equal-parallelism"
RETRIABLE_ANNOTATION: Final = "kueue.x-k8s.io/retriable-in-group"
"""On a pod of a group: `false` ends the group once nothing of it runs."""
ROLE_HASH_ANNOTATION: Final = "kueue.x-k8s.io/role-hash"
"""On a pod of a group: the name of its pod set."""
PREEMPTION_GATE: Final = "kueue.x-k8s.io/multikueue"
"""Of Workload copies: we open it when a worker may preempt."""
ADMISSION_GATE: Final = "kueue.x-k8s.io/admission"
"""Scheduling gate of a pod that Kueue has not started."""
TOPOLOGY_GATE: Final = "kueue.x-k8s.io/topology"
"""Scheduling gate of a pod for which Kueue has yet to choose a node."""
PODSET_LABEL: Final = "kueue.x-k8s.io/podset"
STARTED_LABELS: Final = (
    PODSET_LABEL,
    "kueue.x-k8s.io/cluster-queue-name",
    "kueue.x-k8s.io/local-queue-name",
    "kueue.x-k8s.io/tas",
    "kueue.x-k8s.io/multikueue-worker-workload-pod",
)
"""On the pod templates of a job that a Kueue has started, among other things it has added to them. Which of the marks
it adds depends on its version and feature gates."""
STARTED_ANNOTATIONS: Final = (
    "kueue.x-k8s.io/workload",
    "kueue.x-k8s.io/workload-uid",
    "kueue.x-k8s.io/workload-slice-name",
)
"""Likewise."""

FOREGROUND_FINALIZER: Final = "foregroundDeletion"
"""Of an object that waits for what it owns."""
KUBERNETES_FINALIZERS: Final = frozenset((FOREGROUND_FINALIZER, "orphan"))
WORKLOAD_FINALIZER: Final = "kueue.x-k8s.io/resource-in-use"

ADMISSION_MANAGER: Final = "kueue-admission"
"""Field manager of the admission-owned part of a Workload's status; Kueue's core writes under it too."""

POD_PARENT_ANNOTATION: Final = "kueue.x-k8s.io/pod-suspending-parent"
"""On a pod: the kind that it is made for, where Kueue looks after that (`deployment`, `statefulset`, ...)."""

OWN_PREFIX: Final = "multikueue.dev/"
"""How the names begin that are ours alone."""
HOLDING_GATE: Final = "multikueue.dev/dispatched"
"""Our own scheduling gate, on pods of the manager that run on a worker: Kueue may open its gate, and they stay where
they are. Only new pods can get it; nobody opens it."""
ATTEMPT_ANNOTATION: Final = "multikueue.dev/attempt"
"""On every copy: the mark of the attempt it was made for (`core.model.marks`)."""
JOB_MARK_ANNOTATION: Final = "multikueue.dev/job-mark"
"""On every copy of a job: it was made for its Workload on its worker, whatever the attempt (`core.model.marks`)."""
COPY_OF_ANNOTATION: Final = "multikueue.dev/copy-of"
"""On every copy of a job: it was made of that very job on its worker, whatever its Workload (`core.model.marks`). On a
Workload copy in a namespace of another name: it was made there for whichever Workload has its name here."""
MARKS_OF_COPIES: Final = (ORIGIN_LABEL, PREBUILT_WORKLOAD, ATTEMPT_ANNOTATION, JOB_MARK_ANNOTATION, COPY_OF_ANNOTATION)
"""By what a job copy is found, and proven to be ours."""
SPEC_ANNOTATION: Final = "multikueue.dev/spec"
"""On a Workload copy: digest of the manager's spec it was made from."""

LAST_WORKER_ANNOTATION: Final = "multikueue.dev/last-worker"
"""On a Workload of the manager that was evicted while its worker was out of sight: that worker. It is gone once the
worker has been seen, or has been lost for `workerLostTimeout`."""

PLACEMENTS_ANNOTATION: Final = "multikueue.dev/placements"
"""On a Workload of the manager that was moved: where it has run before (`core.workload.check_updates`)."""
RETRY_ANNOTATION: Final = "multikueue.dev/retry-at"
"""On a job of the manager, any pod of a group, or its Workload, set by its user: a time (RFC 3339). With each new one,
workers that have refused it are asked again at once; on a job, one that a check has rejected before is made active."""
MOVE_FROM_ANNOTATION: Final = "multikueue.dev/move-from"
"""On a Workload of the manager: it shall leave the worker of this name. It is taken off once another worker has it."""
GIVE_UP_ANNOTATION: Final = "multikueue.dev/give-up"
"""On a Workload of the manager, set by a person: `WORKER/UID` of what is left of an earlier attempt there, several with
commas. It is waited for no longer, and may run beside the next attempt."""
FROM_ANNOTATION: Final = "multikueue.dev/from"
"""On every copy of a manager that has a name: `MANAGER/NAMESPACE/UID` of the namespace it comes from. Nobody but the
manager writes it: one on a job or a Workload there is not copied."""
ALLOW_FROM_ANNOTATION: Final = "multikueue.dev/allow-from"
"""On a namespace of a worker: whose copies may be made there, each as `FROM_ANNOTATION` says it, with commas."""
ORIGIN_NAMESPACE_ANNOTATION: Final = "multikueue.dev/origin-namespace"
"""On a copy in a namespace of another name than the manager's: that one."""
ORIGIN_QUEUE_ANNOTATION: Final = "multikueue.dev/origin-queue"
"""On a Workload copy in a LocalQueue of another name than the manager's: that one."""
DEPENDENCY_ANNOTATION: Final = "multikueue.dev/dependency"
"""On a copy of what a job needs beside itself: its mark (`core.model.dependencies`)."""
NEVER_COPIED: Final = (FROM_ANNOTATION, ORIGIN_NAMESPACE_ANNOTATION, ORIGIN_QUEUE_ANNOTATION)
"""What only we say of a copy, whatever stands on what it is made of."""
NAMESPACES_ANNOTATION: Final = "multikueue.dev/namespaces"
"""On a MultiKueueCluster: how namespaces are called there, `{"team-a": "mk-team-a", "*": "mk-*"}`. One that it does not
name has none there. Without it all have the same names."""
QUEUES_ANNOTATION: Final = "multikueue.dev/queues"
"""On a MultiKueueCluster: how LocalQueues are called there, `{"lq-a": "lq-b"}`; others have the same names."""
NAMESPACE_ON_ANNOTATION: Final = "multikueue.dev/namespace-on"
"""On a Workload of the manager: by worker, the namespace there in which its copies are, if it has another name. It is
written before the first of them is made."""
MANAGER_ONLY: Final = (
    LAST_WORKER_ANNOTATION,
    PLACEMENTS_ANNOTATION,
    RETRY_ANNOTATION,
    MOVE_FROM_ANNOTATION,
    GIVE_UP_ANNOTATION,
    NAMESPACE_ON_ANNOTATION,
)
"""Annotations that copies do not have."""
ASKED_AGAIN_ANNOTATION: Final = "multikueue.dev/asked-again-at"
"""On the event of a refusal: when (RFC 3339) the worker is asked again by itself."""
REFUSAL_ANNOTATION: Final = "multikueue.dev/refusal"
"""On the same: why, as JSON; see `RefusalFacts`."""
FINDING_LABEL: Final = "multikueue.dev/finding"
"""On an event that tells of something somebody has to look at: what, for programs; see `ToldFinding`."""


class ToldFinding(StrEnum):
    """The values of that label. They are the ids of the findings, too."""

    STATUS_REFUSED = "status-refused"
    """The manager's API server refuses the status of a job: it would refuse the same again."""
    CONTESTED_FIELD = "contested-field"
    """Something on a worker sets a field of a copy, each time that it is set back."""
    COPY_WAITS = "copy-waits"
    """A large job waits for others to be copied: its namespace has its share of what is kept in memory."""


LED_UNTIL_ANNOTATION: Final = "multikueue.dev/led-until"
"""On a Lease: when somebody led last, if its renewTime does not say so. Empty: nobody ever has."""
CORDON_ANNOTATION: Final = "multikueue.dev/cordoned"
"""On a MultiKueueCluster: the worker gets nothing new, and keeps what it has. `true`, or the reason in words."""
DIFFERENT_ANNOTATION: Final = "multikueue.dev/different-from"
"""On a MultiKueueCluster: the names of others, with commas, whose clusters have the same UID and are not this one."""
PROFILE_ANNOTATION: Final = "multikueue.dev/dispatch-profile"
"""On a MultiKueueConfig: the name of its profile of the dispatcher."""

GIVE_UP_BEFORE_ANNOTATION: Final = "multikueue.dev/give-up-before"
"""On the MultiKueueCluster of a broken worker, set by a person: a time (RFC 3339). What is left there of earlier
attempts, and was created before, is waited for no longer."""
DETACHED_ANNOTATION: Final = "multikueue.dev/detached-at"
"""On the MultiKueueCluster of a ManagedCluster that was deleted and is still there: when (RFC 3339) that was."""

MAX_LABEL_VALUE: Final = 63
MAX_CONDITION_MESSAGE: Final = 32_768
MAX_EVENT_NOTE: Final = 1_024
