#!/bin/sh
# prefect-kubernetes 0.8.0 with prefect 3.9.1 (Python), whose worker makes Jobs of flow runs: env as Kubernetes' list, with a variable
# of a Secret and one that names it.
# Behaviour: all variables with valueFrom are put behind the others. Kubernetes expands $(NAME) only of variables that stand before,
# so the second has the text $(PASSWORD) in it and not the password. One would have guessed that a list keeps its order, on which
# its meaning depends; the same list runs in a Job of one's own.
# Output seen: given: PASSWORD URL; in the Job: URL PASSWORD
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check uv==0.13.9
own/bin/uv pip install --quiet --python own/bin/python prefect-kubernetes==0.8.0 prefect==3.9.1
cat > finding.py <<'PY'
from uuid import UUID

from prefect.client.schemas import FlowRun
from prefect_kubernetes.worker import KubernetesWorkerJobConfiguration

env = [
    {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "broker", "key": "password"}}},
    {"name": "URL", "value": "amqp://jobs:$(PASSWORD)@broker"},
]
container = {"name": "prefect-job", "image": "a", "env": env}
manifest = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"labels": {}},
    "spec": {
        "completions": 1,
        "parallelism": 1,
        "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
    },
}
given = [variable["name"] for variable in env]
configuration = KubernetesWorkerJobConfiguration(command="true", env=env, job_manifest=manifest)
configuration.prepare_for_flow_run(FlowRun(flow_id=UUID(int=1), name="a"))
written = configuration.job_manifest["spec"]["template"]["spec"]["containers"][0]["env"]
print(f"given: {' '.join(given)}")
print(f"in the Job: {' '.join(variable['name'] for variable in written if variable['name'] in given)}")
PY
seen=$(PREFECT_HOME=$folder own/bin/python finding.py)
wanted='given: PASSWORD URL
in the Job: URL PASSWORD'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
