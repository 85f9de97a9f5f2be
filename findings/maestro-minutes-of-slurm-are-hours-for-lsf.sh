#!/bin/sh
# maestrowf 1.2.1 (Python), which writes one step of a study for several schedulers: its walltime.
# Behaviour: 1:30 goes to Slurm as it stands, where two parts are minutes and seconds, and Flux gets 90 seconds. LSF gets it as it
# stands, too, where two parts are hours and minutes: an hour and a half. With three parts all agree; a number is minutes for Slurm
# and Flux and an error for LSF. One would have guessed that a study keeps its limit when its scheduler is changed; the job of 90
# seconds waits at LSF for a slot of 90 minutes. (No scheduler runs here; these are lines of the headers.)
# Output seen: 1:30: --time=1:30, 90 s, -W 1:30; 1:30:00: --time=1:30:00, 5400 s, -W 01:30; 90: --time=90, 5400 s, AttributeError
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check maestrowf==1.2.1
cat > finding.py <<'PY'
from maestrowf.datastructures.core import StudyStep
from maestrowf.interfaces.script.fluxscriptadapter import FluxScriptAdapter
from maestrowf.interfaces.script.lsfscriptadapter import LSFScriptAdapter
from maestrowf.interfaces.script.slurmscriptadapter import SlurmScriptAdapter


def written(adapter, option, walltime):
    step = StudyStep()
    step.name = "example"
    step.run.update(cmd="date", nodes=1, procs=1, walltime=walltime)
    try:
        header = adapter(host="example", bank="example", queue="example", nodes=1).get_header(step)
    except AttributeError:
        return "AttributeError"
    return next(line for line in header.splitlines() if option in line).removeprefix("#SBATCH ").removeprefix("#BSUB ")


for walltime in "1:30", "1:30:00", 90:
    seconds = FluxScriptAdapter._convert_walltime_to_seconds(None, walltime)  # its header needs Flux on the machine
    slurm, lsf = written(SlurmScriptAdapter, "--time", walltime), written(LSFScriptAdapter, "-W", walltime)
    print(f"{walltime}: Slurm {slurm}; Flux {seconds:.0f} s; LSF {lsf}")
PY
seen=$(HOME=$folder own/bin/python finding.py)
wanted='1:30: Slurm --time=1:30; Flux 90 s; LSF -W 1:30
1:30:00: Slurm --time=1:30:00; Flux 5400 s; LSF -W 01:30
90: Slurm --time=90; Flux 5400 s; LSF AttributeError'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
