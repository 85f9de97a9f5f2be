#!/bin/sh
# kubeflow_trainer_api 2.3.0 (Python), models: a TrainJob as an API server returns it, read and written again.
# Behaviour: to_json() fails for each object of a server, as metadata.creationTimestamp is a datetime that it cannot write; and
# a field of the spec that the package does not know is dropped by from_dict without a word, so an update takes it away.
# Output seen: new: json; of a server: TypeError; fields: runtimeRef suspend
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check kubeflow_trainer_api==2.3.0
cat > finding.py <<'PY'
from kubeflow_trainer_api import models


def read(**metadata):
    return models.TrainerV1alpha1TrainJob.from_dict(
        {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "metadata": {"name": "a", **metadata},
            "spec": {"runtimeRef": {"name": "torch"}, "suspend": False, "fieldOfTheNextVersion": 1},
        }
    )


def written(job):
    try:
        job.to_json()
    except Exception as error:
        return type(error).__name__
    return "json"


job = read(creationTimestamp="2026-01-02T03:04:05Z")
print(f"new: {written(read())}; of a server: {written(job)}; fields: {' '.join(sorted(job.to_dict()['spec']))}")
PY
seen=$(own/bin/python finding.py)
wanted='new: json; of a server: TypeError; fields: runtimeRef suspend'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
