#!/bin/sh
# kr8s 0.20.15 (Python), objects.new_class: a class for a kind of one's own.
# Behaviour: the plural, which is the path of each request, is the kind with an s, so Policy and Ingress get paths that no server
# has, and each call is a 404; Kubernetes' own guess (apimachinery, controller-tools) makes y to ies and s to ses.
# Output seen: Workload: workloads; Policy: policys; Ingress: ingresss
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check kr8s==0.20.15
cat > finding.py <<'PY'
from kr8s.objects import new_class

kinds = "Workload.v1beta2.kueue.x-k8s.io", "Policy.v1.example.com", "Ingress.v1.networking.k8s.io"
print("; ".join(f"{kind.partition('.')[0]}: {new_class(kind).plural}" for kind in kinds))
PY
seen=$(own/bin/python finding.py)
wanted='Workload: workloads; Policy: policys; Ingress: ingresss'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
