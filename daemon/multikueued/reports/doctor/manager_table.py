"""The rows of what is to be mended on the manager, but for the webhook."""

from __future__ import annotations

from typing import Final

from multikueued.reports.doctor import access, configuration, kueue, placement
from multikueued.reports.doctor.findings import Check, Severity

ERROR, WARNING, INFO = Severity.ERROR, Severity.WARNING, Severity.INFO

MANAGER_CHECKS: Final = (
    Check(
        "gate-on",
        ERROR,
        "manager",
        "Kueue's own MultiKueue is on, and the daemon has Kueue's `controllerName`",
        "two controllers work on the same checks: copies are made and removed in turns",
        "turn it off: --feature-gates=MultiKueue=false, or featureGates.MultiKueue: false in its Configuration, where "
        "its other gates are; read docs/migration.md first if jobs run through it",
        kueue.gate_on,
    ),
    Check(
        "gate-seems-on",
        WARNING,
        "manager",
        "the gate cannot be seen, and Kueue wrote a worker's status last",
        "two controllers may work on the same checks",
        "look at the feature gates of Deployment kueue-controller-manager: MultiKueue=false is needed; if it is so, "
        "this passes with the daemon's next write",
        kueue.kueue_writes,
    ),
    Check(
        "kueue-too-old",
        ERROR,
        "manager",
        "Kueue is older than 0.15",
        "it does not serve v1beta2, which the daemon speaks",
        "upgrade Kueue, here and on workers",
        kueue.old_kueue,
    ),
    Check(
        "kind-not-served",
        INFO,
        "manager",
        "a kind in the settings is not served by the manager",
        "there can be no jobs of that kind here, and it is watched nowhere",
        "install its CustomResourceDefinition, or leave it out of the settings",
        kueue.kinds_not_served,
    ),
    Check(
        "kind-without-managed-by",
        ERROR,
        "manager",
        "the definition of a kind lacks the field that says who runs a job",
        "its own controller would run each job here, too, so the daemon rejects them",
        "upgrade the operator of that kind to a version whose jobs have the field",
        kueue.kinds_without_managed_by,
    ),
    Check(
        "starts-here",
        ERROR,
        "manager",
        "pods, or kinds made of them, run on a worker and have a check that is Ready",
        "without Kueue's gate MultiKueue their pods run here as well",
        "let them end, or delete them, before the gate is turned off (docs/migration.md)",
        kueue.starting_here,
    ),
    Check(
        "daemon-not-running",
        ERROR,
        "manager",
        "nobody leads: the daemon's Lease is free, or was not renewed",
        "nothing is dispatched",
        "look whether the daemon runs",
        configuration.nobody_leads,
    ),
    Check(
        "permission-missing",
        ERROR,
        "manager",
        "the daemon's service account lacks a verb on the manager",
        "what it may not read it cannot dispatch, what it may not write nobody sees",
        "grant it: multikueue rbac manager prints all rules",
        access.on_manager,
    ),
    Check(
        "no-check",
        ERROR,
        "manager",
        "there is no AdmissionCheck of MultiKueue, or no ClusterQueue names one",
        "no queue leads to workers: jobs run here",
        "create an AdmissionCheck with controllerName kueue.x-k8s.io/multikueue, and name it in "
        "spec.admissionChecksStrategy.admissionChecks of a ClusterQueue",
        configuration.no_checks,
    ),
    *(
        Check(
            name,
            ERROR,
            "manager",
            finds,
            "its queues admit nothing, or fewer workers than meant are offered jobs",
            "",
            configuration.of_checks(name),
        )
        for name, finds in (
            ("check-unseen", "nobody has looked at an AdmissionCheck"),
            ("check-parameters", "an AdmissionCheck refers to no MultiKueueConfig"),
            ("config-missing", "an AdmissionCheck names a MultiKueueConfig that does not exist"),
            ("cluster-missing", "a MultiKueueConfig lists a worker that does not exist; a name that is meant is told"),
        )
    ),
    Check(
        "check-missing",
        ERROR,
        "manager",
        "a ClusterQueue names an AdmissionCheck that does not exist",
        "the queue is inactive: it admits no jobs",
        "correct spec.admissionChecksStrategy.admissionChecks, or create that AdmissionCheck",
        configuration.queues_with_unknown_check,
    ),
    Check(
        "queue-inactive",
        ERROR,
        "manager",
        "a ClusterQueue with a check of MultiKueue is not active",
        "its jobs get no quota here, so no worker is asked",
        "mend what it names; the other findings say more about checks",
        configuration.inactive_queues,
    ),
    Check(
        "cluster-queue-missing",
        WARNING,
        "manager",
        "a LocalQueue leads to a ClusterQueue that does not exist",
        "its jobs wait for ever",
        "create that ClusterQueue, or correct spec.clusterQueue (it cannot be changed: make the LocalQueue again)",
        configuration.queues_without_target,
    ),
    Check(
        "worker-unlisted",
        INFO,
        "manager",
        "a worker is in no MultiKueueConfig of a check",
        "it is connected to, and gets no jobs",
        "list it in spec.clusters of a MultiKueueConfig, or remove it: multikueue worker remove",
        configuration.unlisted_workers,
    ),
    Check(
        "worker-cordoned",
        INFO,
        "manager",
        "a worker is cordoned",
        "it gets nothing new",
        "multikueue worker uncordon {worker}, if that is over",
        configuration.cordoned_workers,
    ),
    Check(
        "placement-inactive",
        ERROR,
        "manager",
        "a placement check is not active, or OCM's addon handles it as well",
        "queues with this check admit nothing, or nobody fills their list of workers",
        "do what its words say; docs/ocm.md has a table of them",
        placement.inactive_checks,
    ),
    Check(
        "order-unused",
        INFO,
        "manager",
        "a Placement orders a MultiKueueConfig, and the dispatcher offers jobs to all workers at once",
        "scores choose nobody: whoever admits a job first gets it",
        "set dispatcher.name: kueue.x-k8s.io/multikueue-dispatcher-incremental to have the best cluster asked first",
        placement.orders_without_use,
    ),
    Check(
        "credentials-expire",
        ERROR,
        "manager",
        "a worker's token or client certificate has expired (error), or does within seven days (warning; within one "
        "if the manager of a ClusterProfile renews it)",
        "the worker is lost then, and its jobs move after workerLostTimeout",
        "multikueue worker rotate {worker} --context CONTEXT",
        access.expiring,
    ),
    Check(
        "bound-token",
        INFO,
        "manager",
        "a worker's token ends, and from when on the daemon renews it; an error if it does not",
        "without renewal the worker is lost when the token ends",
        "nothing, while the daemon runs; its event TokenNotRenewed says if it cannot",
        access.bound,
    ),
    Check(
        "kubeconfig-unusable",
        ERROR,
        "manager",
        "the kubeconfig in a worker's Secret cannot be used",
        "the daemon cannot connect to the worker, or not again",
        "correct it, or make it anew: multikueue worker add {worker} --context CONTEXT",
        access.unusable,
    ),
    Check(
        "credentials-not-in-use",
        WARNING,
        "manager",
        "the daemon is connected with other credentials than the Secret has",
        "the new ones do not work, or nobody has taken them yet",
        "wait a minute; then look at the daemon's log, which says why it does not take them",
        access.not_in_use,
    ),
    Check(
        "worker-says",
        ERROR,
        "manager",
        "the daemon says why a worker is not connected, or not usable for a kind; the id is the reason's, as "
        "`bad-token`, `kubeconfig-key`, `worker-down`, `worker-hung`, `crd-missing`, `rbac`",
        "it is offered no jobs, or none of that kind",
        "",
        configuration.what_workers_say,
    ),
)
"""What is to be mended on the manager."""
