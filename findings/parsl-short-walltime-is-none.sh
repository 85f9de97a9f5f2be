#!/bin/sh
# parsl 2026.10.26 (Python), providers.SlurmProvider: the walltime of a block.
# Behaviour: it is written in whole minutes, rounded down, so 30 seconds become --time=0, which to sbatch is no limit at all; and
# of 90 seconds one minute is left, after which the job is killed. Days as Slurm writes them (2-00:00:00) are an error.
# Output seen: 00:00:30: --time=0; 00:01:30: --time=1; 2-00:00:00: ValueError
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check parsl==2026.10.26
cat > finding.py <<'PY'
import logging
import string

from parsl.providers.slurm.template import template_string
from parsl.utils import wtime_to_minutes

logging.disable(logging.WARNING)  # of less than a minute there is a warning in the log


def written(walltime):
    try:
        minutes = wtime_to_minutes(walltime)  # as SlurmProvider.submit does
    except ValueError:
        return "ValueError"
    script = string.Template(template_string).safe_substitute(walltime=minutes)
    return next(line.split()[1] for line in script.splitlines() if "--time" in line)


print("; ".join(f"{walltime}: {written(walltime)}" for walltime in ("00:00:30", "00:01:30", "2-00:00:00")))
PY
seen=$(own/bin/python finding.py)
wanted='00:00:30: --time=0; 00:01:30: --time=1; 2-00:00:00: ValueError'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
