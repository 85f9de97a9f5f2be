#!/bin/sh
# prefect-kubernetes 0.8.0 with prefect 3.9.1 (Python), whose worker makes Jobs of flow runs: labels of the job.
# Behaviour: each value is made a slug, also where it is a valid label as it is: two dashes become one. Underscores and capitals
# stay. One would have guessed that what is valid is kept: a flow run for Kueue's LocalQueue team--a, a valid name, is put into
# team-a, which is another team's or is not there, so that the job waits for ever; no word is said of it.
# Output seen: team--a: team-a; team__a: team__a; Team.A: Team.A
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

QUEUE = "kueue.x-k8s.io/queue-name"
pod = {"restartPolicy": "Never", "containers": [{"name": "prefect-job", "image": "a"}]}
for queue in "team--a", "team__a", "Team.A":
    manifest = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"labels": {QUEUE: queue}},
        "spec": {"completions": 1, "parallelism": 1, "template": {"spec": pod}},
    }
    configuration = KubernetesWorkerJobConfiguration(command="true", job_manifest=manifest)
    configuration.prepare_for_flow_run(FlowRun(flow_id=UUID(int=1), name="a"))
    print(f"{queue}: {configuration.job_manifest['metadata']['labels'][QUEUE]}")
PY
seen=$(PREFECT_HOME=$folder own/bin/python finding.py)
wanted='team--a: team-a
team__a: team__a
Team.A: Team.A'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
