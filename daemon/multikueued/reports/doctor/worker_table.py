"""The rows of what is to be mended on workers."""

from __future__ import annotations

from typing import Final

from multikueued.reports.doctor import access, workers
from multikueued.reports.doctor.findings import Check, Severity

ERROR, WARNING = Severity.ERROR, Severity.WARNING

WORKER_CHECKS: Final = (
    Check(
        "worker-answers",
        ERROR,
        "worker",
        "a worker does not answer here, or refuses the credentials, and the daemon is not connected to it, either; the "
        "id is the reason's, as for `worker-says`",
        "it is offered no jobs",
        "",
        workers.silent,
    ),
    Check(
        "worker-permission-missing",
        ERROR,
        "worker",
        "the user of a worker's kubeconfig lacks a verb there",
        "the daemon cannot make, follow or remove copies there",
        "grant it there: multikueue rbac worker prints all rules; multikueue worker add {worker} applies them",
        access.on_workers,
    ),
    Check(
        "worker-without-kueue",
        ERROR,
        "worker",
        "a worker does not serve Kueue's kinds in v1beta2",
        "nobody there admits anything",
        "install Kueue 0.15 or later there",
        workers.without_kueue,
    ),
    Check(
        "worker-kueue-older",
        WARNING,
        "worker",
        "a worker's Kueue lacks what jobs may need: preemption gates, slices within slices, names over 63 characters",
        "its API server drops such fields without a word",
        "upgrade Kueue there; docs/versions.md says what each version lacks",
        workers.older_kueue,
    ),
    Check(
        "worker-without-kind",
        WARNING,
        "worker",
        "a worker does not serve an enabled kind that the manager serves; an error if jobs of the kind wait",
        "jobs of that kind cannot run there",
        "install the CustomResourceDefinition and its operator there",
        workers.without_kind,
    ),
    Check(
        "worker-namespace-missing",
        WARNING,
        "worker",
        "a namespace with queues here does not exist on a worker",
        "jobs of that namespace cannot run there",
        "kubectl --context {worker} create namespace {namespace}, or multikueue queues mirror QUEUE "
        "-n {namespace} --context {worker}, which makes it with its LocalQueue",
        workers.without_namespace,
    ),
    Check(
        "worker-local-queue-missing",
        WARNING,
        "worker",
        "a LocalQueue has no twin on a worker; an error if it has none on any worker",
        "jobs of that queue cannot run there",
        "make it there with the same name: multikueue queues mirror {queue} -n {namespace} --context {worker}",
        workers.without_local_queue,
    ),
    Check(
        "worker-cluster-queue",
        WARNING,
        "worker",
        "a twin leads to a ClusterQueue that does not exist there, or is stopped",
        "jobs of that queue wait there for ever",
        "create that ClusterQueue there, or let it go on (spec.stopPolicy: None)",
        workers.without_cluster_queue,
    ),
    Check(
        "never-fits",
        ERROR,
        "worker",
        "a waiting job asks for more than any worker could ever give",
        "it waits for ever, and holds quota of the manager",
        "raise nominalQuota on one of the workers, or request less",
        workers.never_fitting,
    ),
    Check(
        "worker-clock",
        WARNING,
        "worker",
        "the clock of a worker differs from the manager's by more than ten seconds",
        "times of its jobs are wrong, and certificates may not be valid yet or any more",
        "synchronise the clocks of {worker} and of the manager (NTP)",
        workers.skewed,
    ),
    Check(
        "own-clock",
        WARNING,
        "manager",
        "the clock of this machine differs from the manager's by more than ten seconds",
        "ages shown here are wrong, and so is what has expired",
        "synchronise it (NTP)",
        workers.this_machine_skewed,
    ),
    Check(
        "worker-slow",
        WARNING,
        "worker",
        "a worker takes more than a second for a small request",
        "jobs start and end later than they could",
        "look at its API server and the network; from where the daemon runs it may be faster",
        workers.slow,
    ),
)
"""What is to be mended on workers."""
