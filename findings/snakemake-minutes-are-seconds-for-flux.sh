#!/bin/sh
# snakemake-executor-plugin-flux 0.1.1 and snakemake-executor-plugin-slurm 2.8.0 (Python): a rule with a runtime of 60, which
# Snakemake counts in minutes, and with mem_mb.
# Behaviour: Slurm gets -t 60, an hour. For Flux the number is put into the jobspec as it is, whose duration Flux counts in
# seconds: the job is killed after a minute. Memory is handed to Slurm and left out for Flux. One would have guessed an hour for
# both, as the plugins are there so that a workflow can go elsewhere. (No scheduler runs here; a small module stands in for Flux's
# own, which needs its library, and keeps what it is given.)
# Output seen: Slurm: -t 60 --mem 2000; Flux: duration 60 (seconds)
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check --no-compile snakemake-executor-plugin-flux==0.1.1 \
    snakemake-interface-executor-plugins==9.4.0 snakemake-interface-common==1.23.0 \
    snakemake-executor-plugin-slurm==2.8.0 snakemake-executor-plugin-slurm-jobstep==0.6.1
mkdir flux
touch flux/__init__.py
cat > flux/job.py <<'PY'
"""What stands in for Flux's own module."""


class JobspecV1:
    @classmethod
    def from_command(cls, command):
        return cls()


class FluxExecutor:
    def submit(self, jobspec):
        print("Flux:", *(f"{name} {getattr(jobspec, name)}" for name in ("duration", "mem_mb") if hasattr(jobspec, name)))
        return self

    def jobid(self):
        return 1
PY
cat > finding.py <<'PY'
import logging
from types import SimpleNamespace

import flux.job
from snakemake_executor_plugin_flux.executor import FluxExecutor
from snakemake_executor_plugin_slurm.submit_string import get_submit_command


class Resources(dict):
    __getattr__ = dict.__getitem__


job = SimpleNamespace(
    resources=Resources(runtime=60, mem_mb=2000), threads=1, name="example", jobid=1, logfile_suggestion=lambda folder: "logs/log"
)
params = dict.fromkeys(("run_uuid", "slurm_logfile", "comment_str", "account", "partition", "workdir"), "example")
words = get_submit_command(job, params).split()
print("Slurm:", *(f"{option} {words[words.index(option) + 1]}" for option in ("-t", "--mem")))

executor = FluxExecutor.__new__(FluxExecutor)  # it would want a whole workflow
executor.logger, executor.workdir, executor.run_namespace = logging.getLogger(), ".", "example"
executor._fexecutor = flux.job.FluxExecutor()
executor.format_job_exec = lambda job: "date"
executor.report_job_submission = lambda submitted: None
executor.run_job(job)
PY
seen=$(own/bin/python finding.py)
wanted='Slurm: -t 60 --mem 2000
Flux: duration 60'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
