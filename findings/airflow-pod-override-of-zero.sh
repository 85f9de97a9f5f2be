#!/bin/sh
# apache-airflow-providers-cncf-kubernetes 10.25.0 with apache-airflow 3.3.2 and kubernetes 36.0.3 (Python), reconcile_pods, by which
# a task's pod_override is laid over the pod template.
# Behaviour: of the override's values, 0, false and an empty list count as not given, so the template's 30 seconds, true and list
# stay. Containers are matched by their place, init containers by name: an override for the sidecar alone lands on the task's
# container and takes its name away. One would have guessed a strategic merge, as of kubectl patch: values that are set win, and
# containers are found by name.
# Output seen: grace period 30, service links True, tolerations ['spot']; containers logs of image task with tty True, logs of image
# logs:1 with tty None
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check uv==0.13.9
own/bin/uv pip install --quiet --python own/bin/python apache-airflow-providers-cncf-kubernetes==10.25.0 apache-airflow==3.3.2 \
  kubernetes==36.0.3
cat > finding.py <<'PY'
from airflow.providers.cncf.kubernetes.pod_generator import PodGenerator
from kubernetes.client import V1Container, V1Pod, V1PodSpec, V1Toleration

template = V1PodSpec(
    termination_grace_period_seconds=30,
    enable_service_links=True,
    tolerations=[V1Toleration(key="spot")],
    containers=[V1Container(name="base", image="task"), V1Container(name="logs", image="logs:1")],
)
override = V1PodSpec(
    termination_grace_period_seconds=0,
    enable_service_links=False,
    tolerations=[],
    containers=[V1Container(name="logs", tty=True)],
)
pod = PodGenerator.reconcile_pods(V1Pod(spec=template), V1Pod(spec=override)).spec
print(f"grace period {pod.termination_grace_period_seconds}, service links {pod.enable_service_links}")
print(f"tolerations {[toleration.key for toleration in pod.tolerations]}")
print("containers", ", ".join(f"{one.name} of image {one.image} with tty {one.tty}" for one in pod.containers))
PY
seen=$(AIRFLOW_HOME=$folder own/bin/python finding.py 2> errors) || { cat errors >&2; exit 1; }
wanted="grace period 30, service links True
tolerations ['spot']
containers logs of image task with tty True, logs of image logs:1 with tty None"
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
