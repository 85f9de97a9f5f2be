"""The rules of those who read logs: `multikueue pods` and `logs`, and `multikueue api-server`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from multikueue import JobKind
from multikueue.core.model.kinds import KUEUE_GROUP
from multikueue.core.model.names import Json
from multikueued.rbac.role_rule import merged, rule

_JOBS: Final = ("jobs", "batch")
_RAY: Final = ("rayclusters", "ray.io")
BETWEEN: Final[Mapping[str, Sequence[tuple[str, str]]]] = {
    "jobsets.jobset.x-k8s.io": (_JOBS,),
    "trainjobs.trainer.kubeflow.org": (("jobsets", "jobset.x-k8s.io"), _JOBS),
    "mpijobs.kubeflow.org": (_JOBS,),
    "rayjobs.ray.io": (_RAY, _JOBS),
    "rayservices.ray.io": (_RAY,),
    "deployments.apps": (("replicasets", "apps"),),
    "leaderworkersets.leaderworkerset.x-k8s.io": (("statefulsets", "apps"),),
    "pipelineruns.tekton.dev": (("taskruns", "tekton.dev"),),
    "appwrappers.workload.codeflare.dev": (_JOBS, _RAY, ("jobsets", "jobset.x-k8s.io")),
}
"""By kind: what stands between a job and its pods, as plural and group. Owners of other kinds are looked up, too, where
the account may list them."""
API_READS: Final = ("admissionchecks", "clusterqueues", "localqueues", "multikueueclusters", "multikueueconfigs")
"""What jobs are made of beside Workloads."""


def daemon_rules(marks: str, findings: str, lease: str) -> list[Json]:
    """In the daemon's namespace: the key of marks, what the daemon publishes of workers, and whether it leads."""
    return [
        *named_secret_rules([marks]),
        rule("", ["configmaps"], ["get"], [findings]),
        rule("coordination.k8s.io", ["leases"], ["get"], [lease]),
    ]


def log_rules(kinds: Sequence[JobKind]) -> list[Json]:
    """In a whole worker cluster, for `multikueue pods` and `logs`: pods, their logs, what stands between a job and its
    pods, and the events that say why it has none."""
    return [
        rule("", ["pods"], ["list"]),
        rule("", ["pods/log"], ["get"]),
        rule("events.k8s.io", ["events"], ["list"]),
        *between_rules(kinds, "list"),
    ]


def between_rules(kinds: Sequence[JobKind], verb: str) -> list[Json]:
    """For what stands between a job of these kinds and its pods."""
    between = {owner for kind in kinds for owner in BETWEEN.get(kind.resource.qualified, ())}
    return [rule(group, [plural], [verb]) for plural, group in sorted(between)]


def api_server_rules(service: str) -> list[Json]:
    """In the whole manager cluster, for `multikueue api-server`; `service` is the APIService's name.

    Whether a user may read a log is asked by SubjectAccessReviews: the role `system:auth-delegator` would allow more.
    """
    return [
        rule(KUEUE_GROUP, ["workloads"], ["get", "list", "watch"]),
        rule(KUEUE_GROUP, list(API_READS), ["list", "watch"]),
        rule("events.k8s.io", ["events"], ["list"]),
        rule("authorization.k8s.io", ["subjectaccessreviews"], ["create"]),
        rule("apiregistration.k8s.io", ["apiservices"], ["get", "patch"], [service]),
    ]


def page_rules() -> list[Json]:
    """In the whole manager cluster, for the page of `multikueue api-server`: whose a token is."""
    return [rule("authentication.k8s.io", ["tokenreviews"], ["create"])]


def named_secret_rules(names: Sequence[str]) -> list[Json]:
    """In a namespace, to read these Secrets and no other: kubeconfigs, or the key of marks."""
    return [rule("", ["secrets"], ["get"], names)] if names else []


def own_certificate_rules(secret: str) -> list[Json]:
    """In its namespace, for a certificate that `multikueue api-server` makes; `secret` is the Secret's name."""
    return [rule("", ["secrets"], ["get", "patch"], [secret])]


def logs_on_worker(kinds: Sequence[JobKind]) -> list[Json]:
    """In a whole worker cluster, for `multikueue api-server`: it reads our copies, their pods and logs."""
    read = [kind.resource for kind in kinds if not kind.workload_only]
    return merged(
        [
            rule(KUEUE_GROUP, ["workloads"], ["list"]),
            *(rule(resource.gvk.group, [resource.plural], ["list"]) for resource in read),
            *log_rules(kinds),
        ]
    )
