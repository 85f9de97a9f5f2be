#!/bin/sh
# evalys 4.0.7 with pandas 2.3.3 (Python), which draws and sums up traces of clusters: a trace in the Standard Workload Format, in
# which comments begin with ";" and no line has headings.
# Behaviour: the first job is taken for the headings and is gone, without a word. A trace that is written and read again loses one
# more each time. One would have guessed all jobs: here the first one is the longest, as of a machine that is full at the start,
# and with it 99 of 100 hours of work are lost.
# Output seen: jobs in the file: 3; read: 2, of 2 processor hours; written and read again: 1
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check evalys==4.0.7 pandas==2.3.3
cat > trace.swf <<'SWF'
; Version: 2.2
; MaxProcs: 64
1 0 10 36000 20 -1 -1 20 36000 -1 1 1 1 1 1 1 -1 -1
2 60 5 3600 1 -1 -1 1 3600 -1 1 1 1 1 1 1 -1 -1
3 120 5 3600 1 -1 -1 1 3600 -1 1 1 1 1 1 1 -1 -1
SWF
cat > finding.py <<'PY'
import warnings

from evalys.workload import Workload

warnings.simplefilter("ignore")
with open("trace.swf") as trace:
    print(f"jobs in the file: {sum(not line.startswith(';') for line in trace)}")
read = Workload.from_csv("trace.swf")
hours = (read.df.proc_alloc * read.df.execution_time).sum() / 3600
print(f"read: {len(read.df)}, of {hours:.0f} processor hours")
read.to_csv("again.swf")
print(f"written and read again: {len(Workload.from_csv('again.swf').df)}")
PY
seen=$(MPLCONFIGDIR=$folder own/bin/python -W ignore finding.py 2> /dev/null)
wanted='jobs in the file: 3
read: 2, of 2 processor hours
written and read again: 1'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
