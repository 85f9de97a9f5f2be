"""Shapes of files as the samples of Kueue, KubeRay, JobSet and the training projects have them, in our own words."""

from __future__ import annotations

from pathlib import Path

import pytest

from multikueue.core.model.labels import QUEUE_LABEL
from multikueue.core.model.objects import labels_of
from multikueued.demo.files import load_files

QUEUED = "labels: {kueue.x-k8s.io/queue-name: user-queue}"
POD = "spec: {containers: [{name: main, image: example.com/train, resources: {requests: {cpu: 1}}}]}"
ENDING = POD.replace("spec: {", "spec: {restartPolicy: Never, ", 1)
RAY = POD.replace("{requests: {cpu: 1}}", '{limits: {cpu: "1", memory: 2Gi}}')
GPU = POD.replace("{requests: {cpu: 1}}", "{limits: {nvidia.com/gpu: 1}}")

SHAPES = {
    "an indexed Job with a generated name and no namespace": f"""
apiVersion: batch/v1
kind: Job
metadata: {{generateName: sweep-, {QUEUED}}}
spec: {{parallelism: 3, completions: 3, completionMode: Indexed, suspend: true, template: {{{ENDING}}}}}
""",
    "a RayJob without a queue, whose program stands in a ConfigMap behind it": f"""
apiVersion: ray.io/v1
kind: RayJob
metadata: {{name: tune}}
spec:
  entrypoint: python /code/main.py
  runtimeEnvYAML: |
    pip: [requests==2.26.0]
    env_vars: {{count: "1"}}
  ttlSecondsAfterFinished: 60
  rayClusterSpec:
    rayVersion: '2.46.0'
    headGroupSpec: {{rayStartParams: {{}}, template: {{{RAY}}}}}
    workerGroupSpecs:
    - {{groupName: small, replicas: 1, minReplicas: 1, maxReplicas: 5, rayStartParams: {{}}, template: {{{RAY}}}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: code}}
data:
  main.py: |
    print("hello")
""",
    "a RayCluster of groups with none, one and no number of workers": f"""
apiVersion: ray.io/v1
kind: RayCluster
metadata: {{name: notebook, {QUEUED}}}
spec:
  headGroupSpec: {{serviceType: ClusterIP, rayStartParams: {{num-cpus: '0'}}, template: {{{RAY}}}}}
  workerGroupSpecs:
  - {{groupName: none, replicas: 0, minReplicas: 0, maxReplicas: 3, rayStartParams: {{}}, template: {{{RAY}}}}}
  - {{groupName: usual, minReplicas: 1, maxReplicas: 3, rayStartParams: {{}}, template: {{{RAY}}}}}
""",
    "a RayService with an empty line between documents": f"""
---
---
apiVersion: ray.io/v1
kind: RayService
metadata: {{name: serve, {QUEUED}}}
spec:
  serveConfigV2: |
    applications: [{{name: app, import_path: app.main, deployments: [{{name: D, num_replicas: 1}}]}}]
  rayClusterConfig:
    headGroupSpec: {{rayStartParams: {{}}, template: {{{RAY}}}}}
    workerGroupSpecs: [{{groupName: w, replicas: 1, rayStartParams: {{}}, template: {{{RAY}}}}}]
""",
    "a JobSet with a driver that decides, and no counts": f"""
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {{name: set, annotations: {{alpha.jobset.sigs.k8s.io/exclusive-topology: rack}}}}
spec:
  successPolicy: {{operator: All, targetReplicatedJobs: [driver]}}
  failurePolicy: {{maxRestarts: 3}}
  network: {{enableDNSHostnames: true}}
  replicatedJobs:
  - {{name: driver, template: {{spec: {{backoffLimit: 0, template: {{{ENDING}}}}}}}}}
  - {{name: workers, replicas: 2, template: {{spec: {{parallelism: 2, completions: 2, template: {{{ENDING}}}}}}}}}
""",
    "a PyTorchJob that wants GPUs by limits alone": f"""
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {{name: dist, {QUEUED}}}
spec:
  pytorchReplicaSpecs:
    Master: {{replicas: 1, restartPolicy: OnFailure, template: {{{POD}}}}}
    Worker: {{replicas: 2, restartPolicy: OnFailure, template: {{{GPU}}}}}
""",
    "an MPIJob whose launcher runs beside its workers": f"""
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {{name: pi, {QUEUED}}}
spec:
  slotsPerWorker: 1
  runPolicy: {{cleanPodPolicy: Running, ttlSecondsAfterFinished: 60}}
  sshAuthMountPath: /home/mpiuser/.ssh
  mpiReplicaSpecs:
    Launcher: {{replicas: 1, template: {{{POD}}}}}
    Worker: {{replicas: 2, template: {{{POD}}}}}
""",
    "a TrainJob that leaves all but the runtime out": f"""
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {{name: hello, {QUEUED}}}
spec: {{runtimeRef: {{name: torch-distributed, apiGroup: trainer.kubeflow.org, kind: ClusterTrainingRuntime}}}}
""",
    "a LeaderWorkerSet with a leader of its own": f"""
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {{name: lws, {QUEUED}}}
spec:
  replicas: 2
  leaderWorkerTemplate: {{leaderTemplate: {{{POD}}}, size: 3, workerTemplate: {{{POD}}}}}
""",
    "a StatefulSet behind its Service": f"""
apiVersion: v1
kind: Service
metadata: {{name: web}}
spec: {{clusterIP: None, selector: {{app: web}}, ports: [{{port: 80, name: web}}]}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {{name: web, {QUEUED}}}
spec:
  serviceName: web
  replicas: 2
  selector: {{matchLabels: {{app: web}}}}
  template: {{metadata: {{labels: {{app: web}}}}, {POD}}}
""",
    "two pods that are one group": "---".join(
        f"""
apiVersion: v1
kind: Pod
metadata:
  generateName: part-
  labels: {{kueue.x-k8s.io/queue-name: user-queue, kueue.x-k8s.io/pod-group-name: parts}}
  annotations: {{kueue.x-k8s.io/pod-group-total-count: "2"}}
{ENDING}
"""
        for _ in range(2)
    ),
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_a_file_of_this_shape_is_one_job_in_a_queue(shape: str, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    file.write_text(shape)
    loaded = load_files([file])
    (job,) = loaded.jobs
    assert {labels_of(obj)[QUEUE_LABEL] for obj in job.objects} == {"user-queue"}
    assert len(loaded.beside) == shape.count("kind: ConfigMap") + shape.count("kind: Service\n")
