#!/bin/sh
# flytekit 1.16.31 with kubernetes 36.0.3 (Python): a task with resources=Resources(mem="2Gi"), whose documentation says that a
# single value is both the request and the limit.
# Behaviour: only the request is set; for a limit it takes mem=("2Gi", "2Gi"). pod_spec_from_resources of the same library, for
# tasks with a pod template, does make the limit of a request. One would have guessed the limit, by its own words, and one rule for
# both ways; what ends a task that grows beyond its 2Gi is then for the cluster to decide.
# Output seen: one value: requests 2Gi, limits none; two values: requests 2Gi, limits 2Gi; of a pod: requests 2Gi, limits 2Gi
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check uv==0.13.9
own/bin/uv pip install --quiet --python own/bin/python flytekit==1.16.31 flyteidl==1.16.8 kubernetes==36.0.3
cat > finding.py <<'PY'
from flytekit import Resources, task
from flytekit.configuration import Image, ImageConfig, SerializationSettings
from flytekit.core.resources import pod_spec_from_resources
from flytekit.tools.translator import get_serializable


@task(resources=Resources(mem="2Gi"))
def one() -> int:
    return 1


@task(resources=Resources(mem=("2Gi", "2Gi")))
def two() -> int:
    return 2


def amounts(entries):
    return " ".join(entry.value for entry in entries) or "none"


settings = SerializationSettings(image_config=ImageConfig(Image("default", "example", "v1")))
for name, function in ("one value", one), ("two values", two):
    resources = get_serializable({}, settings, function).template.container.resources
    print(f"{name}: requests {amounts(resources.requests)}, limits {amounts(resources.limits)}")
resources = pod_spec_from_resources("primary", requests=Resources(mem="2Gi")).containers[0].resources
print(f"of a pod: requests {resources.requests['memory']}, limits {resources.limits['memory']}")
PY
seen=$(HOME=$folder TMPDIR=$folder own/bin/python finding.py)
wanted='one value: requests 2Gi, limits none
two values: requests 2Gi, limits 2Gi
of a pod: requests 2Gi, limits 2Gi'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
