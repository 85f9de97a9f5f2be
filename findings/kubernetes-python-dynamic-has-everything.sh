#!/bin/sh
# kubernetes 37.0.2 (Python), the objects of the dynamic client (ResourceField): fields that are not there.
# Behaviour: each name is an attribute, so hasattr() is always true and getattr() never returns its default; both a field that no
# controller has written yet and a misspelt one are None. One would have guessed AttributeError, as of the typed client, or the
# default; a loop that waits until a job's status has a field ends at once, and a misspelt condition never holds.
# Output seen: hasattr: True; getattr with a default: None; get with a default: 0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check kubernetes==37.0.2
cat > finding.py <<'PY'
from kubernetes.dynamic.resource import ResourceInstance

job = ResourceInstance(None, {"kind": "Job", "metadata": {"name": "a"}, "status": {"active": 1}})
print(
    f"hasattr: {hasattr(job.status, 'succeeded')};",
    f"getattr with a default: {getattr(job.status, 'succeeded', 0)};",
    f"get with a default: {job.status.get('succeeded', 0)}",
)
PY
seen=$(own/bin/python finding.py)
wanted='hasattr: True; getattr with a default: None; get with a default: 0'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
