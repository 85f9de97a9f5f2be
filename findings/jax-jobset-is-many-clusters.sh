#!/bin/sh
# jax 0.10.2 with kubernetes 36.0.3 (Python): jax.distributed.initialize() in the pods of a JobSet with two Jobs of four pods, which
# JAX finds by itself on Kubernetes ("only supports Job/JobSet").
# Behaviour: each Job of the JobSet is a cluster of its own, with the number of its own pods and a coordinator of its own, so one
# training on eight pods becomes two on four, without an error. The coordinator's name ends in the JobSet's name, also where
# spec.network gives the pods another subdomain, under which alone they can be found. One would have guessed one cluster of all.
# Output seen: train-workers-0: 4 processes, train-workers-0-0.train; train-workers-1: 4 processes, train-workers-1-0.train; pods
# are at: mesh
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check uv==0.13.9
own/bin/uv pip install --quiet --python own/bin/python jax==0.10.2 jaxlib==0.10.2 kubernetes==36.0.3
cat > finding.py <<'PY'
import os

from jax._src.clusters.k8s_cluster import K8sCluster
from kubernetes.client import (
    V1Job,
    V1JobSpec,
    V1ObjectMeta,
    V1OwnerReference,
    V1Pod,
    V1PodSpec,
    V1PodTemplateSpec,
)

for index in range(2):
    name = f"train-workers-{index}"
    labels = {"jobset.sigs.k8s.io/jobset-name": "train", "jobset.sigs.k8s.io/job-index": str(index), "job-name": name}
    spec = V1PodSpec(containers=[], subdomain="mesh")
    template = V1PodTemplateSpec(metadata=V1ObjectMeta(labels=labels), spec=spec)
    job = V1Job(metadata=V1ObjectMeta(name=name, labels=labels), spec=V1JobSpec(parallelism=4, template=template))
    owner = V1OwnerReference(api_version="batch/v1", kind="Job", name=name, uid=str(index), controller=True)
    pod = V1Pod(metadata=V1ObjectMeta(name=f"{name}-0", labels=labels, owner_references=[owner]), spec=spec)
    K8sCluster._job = classmethod(lambda cls: job)  # what it would read from the API server
    K8sCluster._pod = classmethod(lambda cls: pod)
    K8sCluster._controller.__func__.cache_clear()
    os.environ["JOB_COMPLETION_INDEX"] = "0"
    address = K8sCluster.get_coordinator_address(timeout_secs=None, override_coordinator_port="1234")
    count, rank = K8sCluster.get_process_count(), K8sCluster.get_process_id()
    print(f"{name}: {rank} of {count} processes, {address.removesuffix(':1234')}; pods are at: {pod.spec.subdomain}")
PY
seen=$(own/bin/python finding.py)
wanted='train-workers-0: 0 of 4 processes, train-workers-0-0.train; pods are at: mesh
train-workers-1: 0 of 4 processes, train-workers-1-0.train; pods are at: mesh'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
