#!/bin/sh
# python-hostlist 2.3.0 and ClusterShell 1.10.1 (Python), which expand Slurm's lists of nodes: a text of two lines, as
# "sinfo -h -o %N" prints one for each group of nodes, and scontrol show hostnames one for each node.
# Behaviour: python-hostlist gives the nodes of the first line and drops the second. To ClusterShell the end of the line is a letter
# of a name: two lines with brackets are the product of both, four names with a line break inside. Two plain names are one node for
# both. One would have guessed the nodes of all lines, or an error, as both have one for a wrong bracket.
# Output seen: n[1-2]\nm[1-2]: ['n1', 'n2'], ['n1\nm1', 'n1\nm2', 'n2\nm1', 'n2\nm2']; n1\nn2: ['n1\nn2'], ['n1\nn2']
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check python-hostlist==2.3.0 ClusterShell==1.10.1
cat > finding.py <<'PY'
from ClusterShell.NodeSet import NodeSet
from hostlist import expand_hostlist

for text in "n[1-2]\nm[1-2]", "n1\nn2":
    print(f"{text!r}: {expand_hostlist(text)}, {list(NodeSet(text))}")
PY
seen=$(own/bin/python finding.py)
wanted="'n[1-2]\nm[1-2]': ['n1', 'n2'], ['n1\nm1', 'n1\nm2', 'n2\nm1', 'n2\nm2']
'n1\nn2': ['n1\nn2'], ['n1\nn2']"
printf '%s\n' "$seen"
[ "$seen" = "$wanted" ] || { printf 'it has changed; it was %s\n' "$wanted" >&2; exit 1; }
