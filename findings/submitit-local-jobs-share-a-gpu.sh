#!/bin/sh
# submitit 1.5.4 (Python), LocalExecutor, its stand-in for Slurm: two jobs of one GPU each, at once.
# Behaviour: both run at once and both get CUDA_VISIBLE_DEVICES=0; each job's devices are counted from 0 whatever else runs. One
# would have guessed 0 and 1, or that the second waits, as with Slurm; two trainings share one GPU's memory, and the others idle.
# Output seen: devices 0 and 0, together: True
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check submitit==1.5.4
cat > finding.py <<'PY'
import os
import time
from pathlib import Path

import submitit


def job(name, other):
    """Runs until the other one has begun, for at most a minute."""
    Path(name).touch()
    end = time.monotonic() + 60
    while not Path(other).exists() and time.monotonic() < end:
        time.sleep(0.1)
    return os.environ["CUDA_VISIBLE_DEVICES"], Path(other).exists()


executor = submitit.LocalExecutor("logs")
executor.update_parameters(gpus_per_node=1, timeout_min=2)
jobs = [executor.submit(job, *names) for names in (("a", "b"), ("b", "a"))]
(first, one), (second, two) = (job.result() for job in jobs)
print(f"devices {first} and {second}, together: {one and two}")
PY
seen=$(own/bin/python finding.py)
wanted='devices 0 and 0, together: True'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
