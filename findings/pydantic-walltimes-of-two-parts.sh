#!/bin/sh
# pydantic 2.14.4, a field that is a timedelta, and qtoolkit 0.1.7 (Python), by which jobflow-remote reads what Slurm writes: one
# limit of a job's time.
# Behaviour: two parts are hours and minutes for pydantic, and minutes and seconds for Slurm (its manual: minutes:seconds), so
# 30:00 is thirty hours or half an hour; 90, as a number, is seconds for the one and minutes for the other. Three parts are alike.
# One would have guessed that two parts are read like the last two of three; settings that are checked in Python ask the cluster
# for sixty times less than they say.
# Output seen: 01:30:00: 1:30:00, 1:30:00; 30:00: 1 day, 6:00:00, 0:30:00; 90: 0:01:30, 1:30:00
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check pydantic==2.14.4 qtoolkit==0.1.7
cat > finding.py <<'PY'
from datetime import timedelta

from pydantic import TypeAdapter
from qtoolkit.io.slurm import SlurmIO

limit = TypeAdapter(timedelta)
for value in ("01:30:00", "30:00", 90):
    print(f"{value}: {limit.validate_python(value)}, {timedelta(seconds=SlurmIO._convert_str_to_time(str(value)))}")
PY
seen=$(own/bin/python finding.py)
wanted='01:30:00: 1:30:00, 1:30:00
30:00: 1 day, 6:00:00, 0:30:00
90: 0:01:30, 1:30:00'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
