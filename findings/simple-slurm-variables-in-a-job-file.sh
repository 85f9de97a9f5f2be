#!/bin/sh
# simple_slurm 0.3.6 (Python), sbatch of a command that names a variable of its task, at once and by a job file.
# Behaviour: it puts a backslash before each "$", which the here-document of the one way takes off. In the job file of the other
# way, and in script(), nothing takes it off, so each task of an array gets the letters $SLURM_ARRAY_TASK_ID. One would have
# guessed that both run the same script. (A shell script stands in for sbatch here.)
# Output seen: at once: filled in; job file: left as it stands
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check simple_slurm==0.3.6
cat > sbatch <<'SH'
#!/bin/sh
SLURM_ARRAY_TASK_ID=7 sh "${1:-/dev/stdin}" >> ran
echo "Submitted batch job 1"
SH
chmod +x sbatch
cat > finding.py <<'PY'
from pathlib import Path

from simple_slurm import Slurm

for name, how in ("at once", {}), ("job file", {"job_file": "job.sh"}):
    Slurm(array="1-9").sbatch("echo task $SLURM_ARRAY_TASK_ID", sbatch_cmd="./sbatch", verbose=False, **how)
    said = Path("ran").read_text().splitlines()[-1]
    print(f"{name}: {'filled in' if said == 'task 7' else 'left as it stands'}")
PY
seen=$(own/bin/python finding.py)
wanted='at once: filled in
job file: left as it stands'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
