#!/bin/sh
# hyperqueue 0.27.0 (Python), the interface of HyperQueue, which runs tasks within Slurm's and PBS' jobs: a program whose argument is a
# number.
# Behaviour: what it raises for that, ValidationException, is no Exception but a BaseException, as the ends of a program are, such
# as KeyboardInterrupt. So the usual "except Exception" of a server or of a loop over submissions does not catch it: one task with
# 60 for "60" ends the whole. One would have guessed a TypeError or ValueError.
# Output seen: sleep "60": 1 task; sleep 60: past except Exception, ValidationException, 0 tasks
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check hyperqueue==0.27.0
cat > finding.py <<'PY'
from hyperqueue import Job

for seconds in "60", 60:
    job = Job()
    caught = "no error"
    try:
        try:
            job.program(["sleep", seconds])
        except Exception as error:
            caught = f"in except Exception, {type(error).__name__}"
    except BaseException as error:
        caught = f"past except Exception, {type(error).__name__}"
    print(f"sleep {seconds!r}: {caught}, {len(job.tasks)}")
PY
seen=$(own/bin/python finding.py)
wanted="sleep '60': no error, 1
sleep 60: past except Exception, ValidationException, 0"
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
