#!/bin/sh
# jax 0.10.2 and ClusterShell 1.10.1 (Python): the first node of a list as Slurm writes it, at which the processes of a job meet by
# jax.distributed.initialize().
# Behaviour: JAX takes what stands before the first bracket and the first number in it, and leaves out the rest of the name. For
# rack[1-2]n[1-4] the address is rack1, for n[1-2]-ib it is n1: no node has such a name, or another one has it, and all processes
# wait until the time is out. One would have guessed the first node, or an error; a job on one node, or on one rack, works.
# Output seen: n[1-2]: n1, n1; rack1n[3-4]: rack1n3, rack1n3; n[1-2]-ib: n1, n1-ib; rack[1-2]n[1-4]: rack1, rack1n1
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check uv==0.13.9
own/bin/uv pip install --quiet --python own/bin/python jax==0.10.2 jaxlib==0.10.2 ClusterShell==1.10.1
cat > finding.py <<'PY'
import os

from ClusterShell.NodeSet import NodeSet
from jax._src.clusters.slurm_cluster import SlurmCluster

os.environ["SLURM_JOB_ID"] = "7"
for nodes in "n[1-2]", "rack1n[3-4]", "n[1-2]-ib", "rack[1-2]n[1-4]":
    os.environ["SLURM_STEP_NODELIST"] = nodes
    address = SlurmCluster.get_coordinator_address(timeout_secs=None, override_coordinator_port="1234")
    print(f"{nodes}: {address.removesuffix(':1234')}, {NodeSet(nodes)[0]}")
PY
seen=$(own/bin/python finding.py)
wanted='n[1-2]: n1, n1
rack1n[3-4]: rack1n3, rack1n3
n[1-2]-ib: n1, n1-ib
rack[1-2]n[1-4]: rack1, rack1n1'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
