#!/bin/sh
# dask-jobqueue 0.9.0 with distributed 2026.8.0 and PyYAML 6.0.3 (Python): the walltime of a job for Slurm, from a file of
# settings.
# Behaviour: YAML 1.1, which PyYAML reads, counts in sixties: 12:00:00 without quotes is the number 43200, and is written for
# sbatch as it is, which counts minutes: thirty days. 1:30:00 is ninety hours. 01:30:00 and 00:30:00 begin with a zero, are texts
# and are right. One would have guessed one rule for times that are written alike, or an error for a number; the limit of the
# cluster refuses such a job, or it waits for a slot of thirty days.
# Output seen: 12:00:00: -t 43200; 1:30:00: -t 5400; 01:30:00: -t 01:30:00; 00:30:00: -t 00:30:00
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check dask-jobqueue==0.9.0 distributed==2026.8.0 PyYAML==6.0.3
cat > finding.py <<'PY'
import yaml
from dask_jobqueue.slurm import SLURMJob

for text in ("12:00:00", "1:30:00", "01:30:00", "00:30:00"):
    settings = yaml.safe_load(f"cores: 1\nmemory: 1GB\nwalltime: {text}\n")
    script = SLURMJob("tcp://127.0.0.1:8786", name="worker", **settings).job_script()
    (limit,) = [line for line in script.splitlines() if line.startswith("#SBATCH -t")]
    print(f"{text}: {limit.removeprefix('#SBATCH ')}")
PY
seen=$(own/bin/python finding.py)
wanted='12:00:00: -t 43200
1:30:00: -t 5400
01:30:00: -t 01:30:00
00:30:00: -t 00:30:00'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
