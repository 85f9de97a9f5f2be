#!/bin/sh
# torchx 0.7.0 (Python), schedulers.kubernetes_scheduler: a role of one CPU and 1024 MB, for Volcano.
# Behaviour: limits are what was asked for; from the requests 100m and 1024 MB are taken off, for the node's own, so this pod
# requests 900m and no memory. One would have guessed requests like the limits; queues count requests, so small jobs are free of
# memory there, and a node is filled beyond what it has. (MB is written as M, 10^6, 5 % less than the MiB it is measured in
# elsewhere.)
# Output seen: limits 1000m 1024M, requests 900m 0M
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check torchx==0.7.0 kubernetes==35.0.0
cat > finding.py <<'PY'
from torchx.schedulers.kubernetes_scheduler import role_to_pod
from torchx.specs import Resource, Role

role = Role("trainer", image="a", resource=Resource(cpu=1, gpu=0, memMB=1024))
resources = role_to_pod("a", role, None).spec.containers[0].resources
print(*(f"{kind} {amounts['cpu']} {amounts['memory']}" for kind, amounts in
        (("limits", resources.limits), ("requests", resources.requests))), sep=", ")
PY
seen=$(own/bin/python finding.py)
wanted='limits 1000m 1024M, requests 900m 0M'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
