#!/bin/sh
# jupyterhub-kubespawner 7.1.0 with jupyterhub 6.1.1 (Python), which starts a pod for each person's server: memory by mem_limit, and by
# extra_resource_limits, which go to the same container.
# Behaviour: mem_limit has units of its own: 1G is 2^30, so the pod has 7 % more than 1G of its quota, and 1Gi, which each other field
# of Kubernetes means by that, is an error, as are 1k and 1e9. What stands in extra_resource_limits goes to the pod as it is and wins.
# One would have guessed Kubernetes' quantities in both; the manual has the units.
# Output seen: 1G: 1073741824; 512M: 536870912; 1Gi, 1k and 1e9: error; mem_limit 1G beside extra_resource_limits 1G: memory 1G
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check uv==0.9.5  # pip alone takes minutes for these two
HOME=$folder own/bin/uv pip install --quiet --python own/bin/python jupyterhub-kubespawner==7.1.0 jupyterhub==6.1.1
cat > finding.py <<'PY'
from jupyterhub.traitlets import ByteSpecification
from kubespawner import KubeSpawner
from kubespawner.objects import make_pod
from traitlets import HasTraits, TraitError

assert isinstance(KubeSpawner.mem_limit, ByteSpecification)


class Settings(HasTraits):
    mem_limit = ByteSpecification()


def pod(memory, extra):
    made = make_pod("a", ["start"], 8888, "example", "Always", mem_limit=memory, extra_resource_limits=extra)
    return made.spec.containers[0].resources.limits["memory"]


for text in "1G", "512M", "1Gi", "1k", "1e9":
    try:
        print(f"{text}: {pod(Settings(mem_limit=text).mem_limit, {})}")
    except TraitError:
        print(f"{text}: error")
print("both:", pod(Settings(mem_limit="1G").mem_limit, {"memory": "1G"}))
PY
seen=$(HOME=$folder own/bin/python -W ignore finding.py)
wanted='1G: 1073741824
512M: 536870912
1Gi: error
1k: error
1e9: error
both: 1G'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
