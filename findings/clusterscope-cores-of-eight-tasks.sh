#!/bin/sh
# clusterscope 0.0.32 (Python), which says what to ask Slurm for: the share of a node of 8 GPUs, 192 cores and 2 TB, for tasks of one
# GPU each.
# Behaviour: the memory grows with the number of tasks, and so do the GPUs; the cores of a task shrink with it, so that all tasks of
# a node share what belongs to one GPU. One would have guessed 24 cores for each GPU, however many tasks: a job of the whole node
# has 8 GPUs, all memory and 24 of 192 cores. Asked by cores, each task keeps them.
# Output seen: 1 task: 24 cores each, 256G; 2 tasks: 12 cores each, 512G; 8 tasks: 3 cores each, 2048G; 8 tasks of 24 cores: 24 cores
# each, 2048G
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check clusterscope==0.0.32
cat > finding.py <<'PY'
from clusterscope.cluster_info import CPUInfo, GPUInfo, MemInfo, UnifiedInfo


class Node(UnifiedInfo):
    """A node as a cluster would describe it."""

    def get_cpus_per_node(self):
        return CPUInfo(cpu_count=192)

    def get_mem_per_node_MB(self):
        return MemInfo(mem_total_MB=2048 * 1024, mem_total_GB=2048)

    def get_gpu_generation_and_count(self):
        return [GPUInfo("H100", 8, "nvidia")]


def said(tasks, **each):
    shape = Node().get_task_resource_requirements("all", tasks_per_node=tasks, **each)
    return f"{shape.cpus_per_task} cores each, {shape.memory}"


for tasks in 1, 2, 8:
    print(f"{tasks} tasks of a GPU: {said(tasks, gpus_per_task=1)}")
print(f"8 tasks of 24 cores: {said(8, cpus_per_task=24)}")
PY
seen=$(HOME=$folder own/bin/python finding.py)
wanted='1 tasks of a GPU: 24 cores each, 256G
2 tasks of a GPU: 12 cores each, 512G
8 tasks of a GPU: 3 cores each, 2048G
8 tasks of 24 cores: 24 cores each, 2048G'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
