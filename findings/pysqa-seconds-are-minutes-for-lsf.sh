#!/bin/sh
# pysqa 1.1.1 (Python), which writes one job for several schedulers: run_time_max, "maximum runtime in seconds", and memory_max.
# Behaviour: an hour, 3600, is 60 minutes for Slurm and 3600 seconds for Torque. For LSF, whose -W counts in minutes, it is written
# as it is, which is two days and a half. The memory is GB for Slurm and Torque; for LSF it is the bare number, which LSF counts in
# KB where no unit is set. 119 seconds are one minute for Slurm. One would have guessed one limit for all three; at LSF a short job
# waits for a slot of 60 hours. (No scheduler runs here; these are the scripts that would be handed over.)
# Output seen: 3600: SLURM --time=60 --mem=8G; TORQUE mem=8GB walltime=3600; LSF -W 3600 -M 8; 119: SLURM --time=1 ...
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check pysqa==1.1.1
cat > finding.py <<'PY'
import re
from pathlib import Path

from pysqa import QueueAdapter

shown = re.compile(r"^#\S+ (?:-l )?(--time=\S+|--mem=\S+|mem=\S+|walltime=\S+|-W \S+|-M \S+)")
for seconds in (3600, 119):
    for scheduler in ("SLURM", "TORQUE", "LSF"):
        adapter = QueueAdapter(queue_type=scheduler, execute_command=lambda *_, **__: None)
        limits = {"cores": 4, "memory_max": 8, "run_time_max": seconds}
        adapter.submit_job(job_name="example", working_directory=scheduler, command="date", **limits)
        script = Path(scheduler, "run_queue.sh").read_text()
        print(f"{seconds}: {scheduler}", *(match[1] for match in map(shown.match, script.splitlines()) if match))
PY
seen=$(own/bin/python finding.py)
wanted='3600: SLURM --time=60 --mem=8G
3600: TORQUE mem=8GB walltime=3600
3600: LSF -W 3600 -M 8
119: SLURM --time=1 --mem=8G
119: TORQUE mem=8GB walltime=119
119: LSF -W 119 -M 8'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
