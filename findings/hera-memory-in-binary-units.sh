#!/bin/sh
# hera 7.1.0 (Python), workflows.Resources, for Argo Workflows: memory as Kubernetes' quantities.
# Behaviour: only a whole or broken number with Ki, Mi, Gi and so on is taken; 1G, 1e9 and bytes, which a pod may have, are a
# ValueError, also where they are as large as what is taken. For CPUs 500m and 0.5 are both taken. One would have guessed that
# each quantity of a manifest is.
# Output seen: 1Gi: 1Gi; 1.5Gi: 1.5Gi; 1G: ValueError; 1e9: ValueError; 1073741824: ValueError
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check hera==7.1.0
cat > finding.py <<'PY'
from hera.workflows import Resources


def said(memory):
    try:
        return Resources(memory_request=memory).build().requests["memory"].root
    except ValueError:
        return "ValueError"


print("; ".join(f"{memory}: {said(memory)}" for memory in ("1Gi", "1.5Gi", "1G", "1e9", "1073741824")))
PY
seen=$(own/bin/python finding.py)
wanted='1Gi: 1Gi; 1.5Gi: 1.5Gi; 1G: ValueError; 1e9: ValueError; 1073741824: ValueError'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
