#!/bin/sh
# kubeflow-training 1.9.4 (Python), the SDK of the Training Operator: resources_per_worker, as a dict, of a device plugin's resource
# whose name has capitals.
# Behaviour: all names are written in small letters, so that "GPU" and "CPU" are read. Kubernetes tells capitals apart: what the
# job asks for, rdma/hca_a, is on no node that has rdma/hca_A, and its pods stay Pending. The same as a V1ResourceRequirements keeps
# its name. One would have guessed that at least a name with a prefix is taken as it is.
# Output seen: dict: cpu rdma/hca_a; object: CPU rdma/hca_A
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check kubeflow-training==1.9.4
cat > finding.py <<'PY'
from kubeflow.training.utils.utils import get_container_spec
from kubernetes.client import V1ResourceRequirements

asked = {"CPU": "2", "rdma/hca_A": "1"}
for name, resources in ("dict", asked), ("object", V1ResourceRequirements(limits=asked)):
    container = get_container_spec(name="a", base_image="b", resources=resources)
    print(f"{name}: {' '.join(sorted(container.resources.limits))}")
PY
seen=$(own/bin/python finding.py)
wanted='dict: cpu rdma/hca_a
object: CPU rdma/hca_A'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
