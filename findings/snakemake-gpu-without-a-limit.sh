#!/bin/sh
# snakemake-executor-plugin-kubernetes 0.5.1 with snakemake 9.27.1 (Python), which makes a Job of each job of a workflow: a rule
# with 4 threads, 1000 MB and a GPU of NVIDIA.
# Behaviour: limits are written only where the rule has scale=False; without it there are requests alone, for the GPU too. A GPU
# cannot be overcommitted, so API servers refuse a request without a limit: "Limit must be set for non overcommitable resources".
# One would have guessed that what asks for a GPU is written so as to get it.
# Output seen: as it is: requests cpu memory nvidia.com/gpu, no limits; scale=False: limits cpu memory nvidia.com/gpu
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check uv==0.13.9
own/bin/uv pip install --quiet --python own/bin/python snakemake==9.27.1 snakemake-executor-plugin-kubernetes==0.5.1
cat > finding.py <<'PY'
import logging
from types import SimpleNamespace

from snakemake_executor_plugin_kubernetes import Executor, ExecutorSettings

submitted = []
executor = object.__new__(Executor)  # what its constructor reads from a workflow and a kubeconfig
executor.workflow = SimpleNamespace(deployment_settings=SimpleNamespace(deployment_method=set()))
executor.logger = logging.getLogger()
executor.namespace = executor.run_namespace = "ns"
executor.container_image = "snakemake/snakemake:v9.27.1"
executor.persistent_volumes, executor.secret_envvars = [], {}
executor.k8s_service_account_name, executor.privileged = None, False
executor.k8s_cpu_scalar = ExecutorSettings().cpu_scalar
executor.batchapi = SimpleNamespace(create_namespaced_job=lambda namespace, body: submitted.append(body))
executor._kubernetes_retry = lambda call: call()
executor.format_job_exec = lambda job: "snakemake"
executor.report_job_submission = lambda info: None
for name, extra in ("as it is", {}), ("scale=False", {"scale": False}):
    resources = {"_cores": 4, "mem_mb": 1000, "gpu": 1, "gpu_manufacturer": "nvidia", **extra}
    executor.run_job(SimpleNamespace(resources=resources, jobid=1, attempt=1, is_containerized=False))
    written = submitted[-1].spec.template.spec.containers[0].resources
    print(f"{name}: requests {' '.join(written.requests)}; limits {' '.join(written.limits or ['none'])}")
PY
seen=$(HOME=$folder own/bin/python finding.py)
wanted='as it is: requests cpu memory nvidia.com/gpu; limits none
scale=False: requests cpu memory nvidia.com/gpu; limits cpu memory nvidia.com/gpu'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
