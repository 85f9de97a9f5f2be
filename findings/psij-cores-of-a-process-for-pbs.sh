#!/bin/sh
# psij-python 0.9.11 (Python), which writes one job for several schedulers: two nodes with three processes each, of four cores and a
# GPU per process.
# Behaviour: only Slurm's script asks for the cores. PBS Pro's asks for as many cores as there are processes, and for no GPU; LSF's
# forgets the cores, the older PBS' asks for one GPU of a node. Nothing is said. One would have guessed that what a scheduler's
# script cannot carry is an error; the processes of a job that asked for 24 cores share 6, and run, or fail, without their GPUs.
# Output seen: slurm: --nodes=2 --ntasks=6 --ntasks-per-node=3 --gpus-per-task=1 --cpus-per-task=4; lsf: -nnodes 2 -n 6
# -gpu num=1/task; pbs: -l select=2:ncpus=3:mpiprocs=3; pbs_classic: -l nodes=2:ppn=3:gpus=1
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check psij-python==0.9.11
cat > finding.py <<'PY'
import io
import re

from psij import Job, JobExecutor, JobSpec, ResourceSpecV1

size = {"node_count": 2, "processes_per_node": 3, "cpu_cores_per_process": 4, "gpu_cores_per_process": 1}
for name in "slurm", "lsf", "pbs", "pbs_classic":
    executor = JobExecutor.get_instance(name)
    job = Job(JobSpec(executable="/bin/true", resources=ResourceSpecV1(**size)))
    script = io.StringIO()
    executor.generate_submit_script(job, executor._create_script_context(job), script)
    asked = re.findall(r"^#(?:SBATCH|BSUB|PBS) (.*(?:node|task|select=|-n |gpu).*)$", script.getvalue(), re.MULTILINE)
    print(f"{name}: {' '.join(asked)}")
PY
seen=$(HOME=$folder own/bin/python finding.py)
wanted='slurm: --nodes=2 --ntasks=6 --ntasks-per-node=3 --gpus-per-task=1 --cpus-per-task=4
lsf: -nnodes 2 -n 6 -gpu num=1/task
pbs: -l select=2:ncpus=3:mpiprocs=3
pbs_classic: -l nodes=2:ppn=3:gpus=1'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
