#!/bin/sh
# dask-jobqueue 0.9.0 with distributed 2026.8.0 (Python): a job of 8 cores, 3 processes and 1500 MB, for Slurm and for PBS.
# Behaviour: each process gets whole threads, so Slurm is asked for 8 cores and 6 are used. Memory is rounded up to one unit, for
# Slurm to a whole G, so it is asked for 2G, for PBS for 1431MB; the workers are told 1.40GiB in both. One would have guessed one
# amount; on the one cluster two cores and a third of the memory are charged and never used.
# Output seen: SLURMJob: 8 cores, 2G, 3 workers of 2 threads; PBSJob: 8 cores, 1431MB, 3 workers of 2 threads
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check dask-jobqueue==0.9.0 distributed==2026.8.0 dask==2026.8.0
cat > finding.py <<'PY'
import re

from dask_jobqueue.pbs import PBSJob
from dask_jobqueue.slurm import SLURMJob

for kind in SLURMJob, PBSJob:
    text = kind(scheduler="tcp://127.0.0.1:1", name="a", cores=8, processes=3, memory="1500MB").job_script()
    words = (r"(?:cpus-per-task|ncpus)=(\d+)", r"mem=(\w+)", r"--nworkers (\d+)", r"--nthreads (\d+)")
    asked = [re.search(word, text).group(1) for word in words]
    print("{}: {} cores, {}, {} workers of {} threads".format(kind.__name__, *asked))
PY
seen=$(own/bin/python finding.py)
wanted='SLURMJob: 8 cores, 2G, 3 workers of 2 threads
PBSJob: 8 cores, 1431MB, 3 workers of 2 threads'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
