"""A pod of a run on a worker, with all that mirrors leave out."""

from __future__ import annotations

from typing import Any

from multikueue.core.model.kinds import JOB
from multikueue.core.model.names import Json
from multikueue.core.model.objects import name_of
from multikueue.core.model.objects import uid as uid_of
from multikueued.mirrors.mirror import RUNS_POD, Run, shown_of


def worker_pod(**status: Any) -> Json:
    """As the worker's API server has it."""
    main: Json = {
        "name": "main",
        "image": "example.com/train:1",
        "command": ["train"],
        "args": ["--epochs=3"],
        "env": [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "token", "key": "t"}}}],
        "ports": [{"name": "http", "containerPort": 8080, "hostPort": 80, "protocol": "TCP"}],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        "resources": {"requests": {"cpu": "4"}, "limits": {"nvidia.com/gpu": "1"}},
        "securityContext": {"privileged": True},
        "livenessProbe": {"exec": {"command": ["true"]}},
        "restartPolicy": "Never",
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "namespace": "mk-team-a",
            "name": "train-0-abcde",
            "uid": "pod-uid",
            "resourceVersion": "7",
            "labels": {
                "app": "train",
                "batch.kubernetes.io/job-name": "train",
                "batch.kubernetes.io/controller-uid": "copy-uid",
                "controller-uid": "copy-uid",
                "kueue.x-k8s.io/podset": "main",
                "kueue.x-k8s.io/cluster-queue-name": "there",
                "kueue.x-k8s.io/multikueue-worker-workload-pod": "true",
                "multikueue.dev/mirror": "forged",
            },
            "annotations": {
                "batch.kubernetes.io/job-completion-index": "0",
                "kubectl.kubernetes.io/default-container": "main",
                "kueue.x-k8s.io/pod-suspending-parent": "job",
                "multikueue.dev/mirror-proof": "forged",
                "example.com/other": "x",
            },
            "ownerReferences": [
                {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "copy-uid", "controller": True}
            ],
            "finalizers": ["batch.kubernetes.io/job-tracking"],
            "managedFields": [{"manager": "kubelet"}],
        },
        "spec": {
            "nodeName": "node-7",
            "restartPolicy": "OnFailure",
            "serviceAccountName": "trainer",
            "priorityClassName": "high",
            "runtimeClassName": "gvisor",
            "schedulingGates": [],
            "hostNetwork": True,
            "nodeSelector": {"pool": "gpu"},
            "volumes": [{"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}],
            "initContainers": [
                {"name": "sidecar", "image": "s", "restartPolicy": "Always", "volumeMounts": [{"name": "data"}]}
            ],
            "containers": [main],
            "ephemeralContainers": [{"name": "debug", "image": "d"}],
        },
        "status": {
            "phase": "Running",
            "startTime": "2026-11-28T10:00:00Z",
            "qosClass": "Guaranteed",
            "podIP": "10.1.2.3",
            "podIPs": [{"ip": "10.1.2.3"}],
            "hostIP": "192.168.1.7",
            "hostIPs": [{"ip": "192.168.1.7"}],
            "nominatedNodeName": "node-8",
            "observedGeneration": 3,
            "resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "gpu-1"}],
            "extendedResourceClaimStatus": {"resourceClaimName": "gpu-2"},
            "conditions": [
                {
                    "type": "Ready",
                    "status": "True",
                    "lastProbeTime": None,
                    "lastTransitionTime": "2026-11-28T10:00:01Z",
                    "observedGeneration": 3,
                }
            ],
            "containerStatuses": [
                {
                    "name": "main",
                    "ready": True,
                    "started": True,
                    "restartCount": 0,
                    "image": "example.com/train:1",
                    "imageID": "example.com/train@sha256:0",
                    "containerID": "containerd://0",
                    "allocatedResources": {"cpu": "4"},
                    "resources": {"requests": {"cpu": "4"}},
                    "state": {"running": {"startedAt": "2026-11-28T10:00:01Z"}},
                    "lastState": {},
                }
            ],
            **status,
        },
    }


def manager_job(uid: str = "job-uid") -> Json:
    """The job behind it, as the manager has it."""
    labels = {
        "app": "train",
        "kueue.x-k8s.io/podset": "main",
        "kueue.x-k8s.io/cluster-queue-name": "here",
        "kueue.x-k8s.io/queue-name": "lq",
        "kueue.x-k8s.io/managed": "true",
        "kueue.x-k8s.io/pod-group-name": "g",
        "kueue.x-k8s.io/tas": "true",
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"namespace": "team-a", "name": "train", "uid": uid},
        "spec": {"template": {"metadata": {"labels": labels}}},
    }


def run(job: Json | None = None) -> Run:
    """What the pod is shown for."""
    return Run("worker1", job or manager_job(), JOB.gvk, "copy-uid", "team-a")


def shown(pod: Json | None = None) -> Json:
    """What is kept of it."""
    kept = shown_of(pod or worker_pod())
    assert kept is not None
    return kept


def a_pod(name: str, owner: Json | None, **labels: str) -> Json:
    """A pod that somebody makes on a worker."""
    metadata: Json = {"namespace": "default", "name": name, "labels": {RUNS_POD: "true", **labels}}
    if owner is not None:
        reference = {"apiVersion": "batch/v1", "kind": "Job", "name": name_of(owner), "uid": uid_of(owner)}
        metadata["ownerReferences"] = [{**reference, "controller": True}]
    spec = {"nodeName": "n", "containers": [{"name": "main", "image": "i"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
