#!/bin/sh
# clusterscope 0.0.32 (Python), which tells what a Slurm cluster has: the number of GPUs in what sinfo prints as GRES of nodes.
# Behaviour: where the type of the GPU has a point or a dash, the number that is found is the first digit of the type, or none:
# 7 slices 1g.5gb are one GPU, 2 slices 3g.20gb are three, and nodes of a100-80gb have none. Of two types only the first is counted.
# Without such a letter it is right. One would have guessed that a count is what stands behind the last colon, or an error: MIG's
# profiles all have a point.
# Output seen: gpu:a100:4(S:0-1): 4; gpu:1g.5gb:7: 1; gpu:3g.20gb:2: 3; gpu:a100-80gb:4: 0; gpu:a100:4,gpu:v100:2: 4
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check clusterscope==0.0.32
cat > finding.py <<'PY'
from clusterscope.slurm.parser import parse_gres

for text in "gpu:a100:4(S:0-1)", "gpu:1g.5gb:7", "gpu:3g.20gb:2", "gpu:a100-80gb:4", "gpu:a100:4,gpu:v100:2":
    print(f"{text}: {parse_gres(text)}")
PY
seen=$(own/bin/python finding.py)
wanted='gpu:a100:4(S:0-1): 4
gpu:1g.5gb:7: 1
gpu:3g.20gb:2: 3
gpu:a100-80gb:4: 0
gpu:a100:4,gpu:v100:2: 4'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
