#!/bin/sh
# qtoolkit 0.1.7 (Python), by which jobflow-remote speaks with Slurm: time limits, as squeue shows them and people write them.
# Behaviour: behind a day's hyphen Slurm counts from hours (its manual: days-hours, days-hours:minutes). Here what is left out is
# left out in front, so 2-12 is two days and 12 minutes, and 2-12:30 two days, 12 minutes and 30 seconds. With all four parts, and
# without days, it is right. One would have guessed two days and a half; a job's remaining time is short by half a day.
# Output seen: 90: 1:30:00; 2-12: 2 days, 0:12:00; 2-12:30: 2 days, 0:12:30; 2-12:30:00: 2 days, 12:30:00
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check qtoolkit==0.1.7
cat > finding.py <<'PY'
from datetime import timedelta

from qtoolkit.io.slurm import SlurmIO

read = SlurmIO._convert_str_to_time
print("; ".join(f"{text}: {timedelta(seconds=read(text))}" for text in ("90", "2-12", "2-12:30", "2-12:30:00")))
PY
seen=$(own/bin/python finding.py)
wanted='90: 1:30:00; 2-12: 2 days, 0:12:00; 2-12:30: 2 days, 0:12:30; 2-12:30:00: 2 days, 12:30:00'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
