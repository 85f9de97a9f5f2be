#!/bin/sh
# snakemake-executor-plugin-kueue 0.1.0 with snakemake 8.0.1 (Python), which makes a Job for Kueue of each job of a workflow: a rule for
# one node, with two cores and a runtime of 60.
# Behaviour: the nodes become the Job's parallelism, and its completions are 3, whatever the rule says: the command runs three times,
# one after the other, before the rule is done, and for four nodes in three pods, not in four. The runtime is put where no Job has
# such a field and is not sent. One would have guessed one pod for each node, and a deadline.
# Output seen: nodes 1: parallelism 1, completions 3, deadline None; nodes 4: parallelism 4, completions 3, deadline None
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv own
own/bin/pip install --quiet --disable-pip-version-check snakemake-executor-plugin-kueue==0.1.0 snakemake==8.0.1 setuptools==80.9.0
cat > config <<'YAML'
# The plugin reads a kubeconfig as it is imported; nothing is sent.
apiVersion: v1
kind: Config
current-context: example
contexts: [{name: example, context: {cluster: example, user: example}}]
clusters: [{name: example, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: example, user: {}}]
YAML
cat > finding.py <<'PY'
from types import SimpleNamespace

from kubernetes import client
from snakemake_executor_plugin_kueue import ExecutorSettings
from snakemake_executor_plugin_kueue.custom_resource import BatchJob

for nodes in 1, 4:
    rule = SimpleNamespace(name="align", jobid=1, resources={"_nodes": nodes, "_cores": 2, "runtime": 60})
    made = BatchJob(rule, "Snakefile", ExecutorSettings()).generate("example", "snakemake", ["align"])
    sent = client.ApiClient().sanitize_for_serialization(made)
    spec, pod = sent["spec"], sent["spec"]["template"]["spec"]
    deadline = next((part["activeDeadlineSeconds"] for part in (spec, pod) if "activeDeadlineSeconds" in part), None)
    print(f"nodes {nodes}: parallelism {spec['parallelism']}, completions {spec['completions']}, deadline {deadline}")
    assert "60" not in str(sent), "the runtime is sent"
PY
seen=$(HOME=$folder KUBECONFIG=$folder/config own/bin/python -W ignore finding.py)
wanted='nodes 1: parallelism 1, completions 3, deadline None
nodes 4: parallelism 4, completions 3, deadline None'
echo "$seen"
[ "$seen" = "$wanted" ] || { echo "it has changed; it was $wanted" >&2; exit 1; }
